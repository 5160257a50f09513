package gate

import (
	"context"
	"slices"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// A script's preview may tell which calls it will make, all of them with their
// arguments. Then people are asked about those that policy asks about at once, with
// the first that is made. The preview comes from a process that runs the script, so
// nothing depends on its being right: a planned call is looked up, read and decided
// here as a real one is, people see it as it would be sent, and their answer is for a
// call that is exactly that one (approval, plan.go).

// A foresight is a run, with what its preview tells.
type foresight struct{ *Run }

// plan returns the other calls of the script that people would be asked about, none if
// that cannot be told of all of them.
func (r foresight) plan(c *call) []approval.Item {
	r.mu.Lock()
	report := r.sites
	r.mu.Unlock()
	passed := r.tally.places()
	own := slices.IndexFunc(report.Calls, func(site analysis.CallSite) bool { return site.Position == c.Position })
	if own < 0 || report.Calls[own].Loop || report.Truncated || report.Unknown > 0 {
		return nil
	}
	before, ahead := acquaintance{r.gate.met.Ahead(r.Session)}, acquaintance{r.gate.met.Ahead(r.Session)}
	ahead.Meet(r.Session, c.names(r.gate.View(), c.meaning))
	if landed := ahead.move(r.gate.View(), r.Session, c); landed != nil {
		landed(true)
	}
	var all []approval.Item
	for i, site := range report.Calls {
		if i == own || passed[site.Position] && !site.Loop {
			continue
		}
		has := ahead
		if i < own { // it has led the browser where that is now
			has = before
		}
		made, known := r.foresee(site, has)
		if !known {
			return nil
		}
		if made != nil {
			all = append(all, r.request(made).Items...)
		}
	}
	return all
}

// foresee makes the call of a previewed site up to the question about it; nil if people
// would not be asked about it alone or at all. It reports whether that can be told.
// Ahead is what the session will have met by then; it is brought up to date.
func (r foresight) foresee(site analysis.CallSite, ahead acquaintance) (c *call, known bool) {
	view := r.gate.View()
	tool, ok := r.Names.Find(view.Catalog, site.Name)
	if !ok || tool.Stale || site.Args == "" {
		return nil, false
	}
	args, err := canon.Parse([]byte(site.Args))
	if err != nil {
		return nil, false
	}
	identity, ok := view.Identities[tool.Server]
	if !ok && tool.Server != "" && view.Identities != nil {
		return nil, false
	}
	c = &call{Call: Call{Name: site.Name, Position: site.Position}, gate: r.gate, tool: tool, identity: identity, args: args}
	c.meaning = r.meaning(view, c)
	r.onPage(c.meaning, ahead.At(c.whose(view, r.Session, provenance.Browser)))
	c.began = c.meaning
	c.carries(view, &r.read)
	c.flow = data(r).flow(view, c)
	c.decision = r.judge(view, c, r.tally.others(c))
	r.rank(view, c, ahead)
	r.secrets.learn(args, c.displayOptions(nil))
	d := c.decision
	_, wrong := view.check(tool, args, r.bound(view))
	_, unreviewed := view.unreviewed(tool)
	if d.Disposition == profiles.Ask && site.Loop {
		return nil, false
	}
	if d.Disposition != profiles.Ask || wrong != nil || unreviewed || !r.mayAsk(d) || c.moved(r.Run, c.identity) != nil {
		return nil, true
	}
	r.findSources(c)
	return c, true
}

// onPage puts into m the page on which a call acts in its turn, when those before it have
// led there; none if nobody can know.
func (r foresight) onPage(m *profiles.Meaning, host string) {
	if m == nil {
		return
	}
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if h.Param != pageParam {
			continue
		}
		if h.Name, h.Doubt, h.Bare = host, "", host != ""; host == "" {
			h.Doubt = unknownPage
		}
		h.New = host == "" || !r.gate.met.Knows(r.Session, hostName(*h))
	}
}

// rank gives c the risk that it will have in its turn, when people have said yes to the
// calls before it: what is new with one of them is not new with the next. Everything
// else stays as it is judged now, and a call that turns out riskier is asked about anew.
func (r foresight) rank(view *View, c *call, ahead acquaintance) {
	then := *c
	then.meaning = ahead.meaning(r.Run, view, c)
	then.carries(view, &r.read)
	if d := r.judge(view, &then, r.tally.others(c)); d.Disposition == profiles.Ask && c.decision.Disposition == profiles.Ask {
		c.decision.Risk, c.decision.Hinted, c.decision.Reasons = d.Risk, d.Hinted, d.Reasons
		ahead.Meet(r.Session, c.names(view, then.meaning))
	}
	if landed := ahead.move(view, r.Session, c); landed != nil {
		landed(true)
	}
}

// inLoop reports whether, as the preview has it, a call is in a loop.
func (r foresight) inLoop(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.sites.Calls, func(site analysis.CallSite) bool { return site.Loop && site.Position == c.Position })
}

// lapse records the calls that people allowed beforehand and that the run has not
// made. One that was suspended may still make them, within approval.PlanFor.
func (r foresight) lapse(ctx context.Context) error {
	for _, i := range r.gate.broker.Lapse(r.ID) {
		rec := ledger.Record{Event: ledger.Lapsed, Server: i.Server, Tool: i.Tool, Identity: i.Key.Identity, Args: i.Shown.JSON, Digest: i.Key.Args.String(),
			Line: i.Position.Line, Column: i.Position.Column, Disposition: i.Decision.Disposition.String(), Risk: i.Decision.Risk.String(), Revision: i.Decision.Revision}
		if err := r.record(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}
