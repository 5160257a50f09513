package audit

import (
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A playedRun is what is known of a run while its rows are read.
type playedRun struct {
	profile string
	context *playedContext
	private bool // somebody had read something that may be private when it began
	facts   profiles.RunFacts
	sent    map[int]source // by the call's number
	read    []source       // what has answered, each once
	stored  map[string][]profiles.FlowFact
	open    map[int]*playedCall
}

type source struct{ server, tool string }

// A playedCall is a call that is not over.
type playedCall struct {
	others            profiles.RunFacts // of the run when it was decided first
	asked, remembered bool              // remembered: an earlier yes answered
	yes, no           bool
	answer            string
	content           []profiles.FlowFact
	meaning           *profiles.Meaning
	labels            profiles.Labels
}

// A playedContext is what the runs share that read before each other: those of a session
// or, where each request is one, of a principal.
type playedContext struct {
	brief bool
	last  time.Time // something was read
	read  []source
	met   map[string]bool
	pages map[string]string // the host of the page that is open, by server
}

// contextLasts is how long that of a principal does, after something was read. See
// provenance.Lasts.
const contextLasts = 8 * time.Hour

// run returns the run of a record.
func (p *player) run(r ledger.Record) *playedRun {
	run := p.runs[r.Run]
	if run != nil && r.Event != ledger.RunStarted {
		return run
	}
	key := "session " + r.Session
	if r.Brief {
		key = "principal " + r.Principal
		if r.Principal == "" {
			key = "endpoint " + r.Configuration + " " + r.Profile
		}
	}
	c := p.contexts[key]
	if c == nil || c.brief && r.Time.Sub(c.last) > contextLasts {
		c = &playedContext{brief: r.Brief, last: r.Time, met: map[string]bool{}, pages: map[string]string{}}
		p.contexts[key] = c
	}
	run = &playedRun{profile: r.Profile, context: c, sent: map[int]source{}, stored: map[string][]profiles.FlowFact{}, open: map[int]*playedCall{}}
	run.private = slices.ContainsFunc(c.read, func(s source) bool { return p.memory.labels(s).May(profiles.LabelPrivate) })
	p.runs[r.Run] = run
	return run
}

// call returns the call of a record, and counts it among those of the run when it is
// first heard of.
func (run *playedRun) call(r ledger.Record) *playedCall {
	c := run.open[r.Call]
	if c == nil {
		c = &playedCall{others: run.facts}
		c.others.Tools = slices.Clone(run.facts.Tools)
		run.open[r.Call] = c
		run.facts.Calls++
		if path := r.Path(); !slices.Contains(run.facts.Tools, path) {
			run.facts.Tools = append(run.facts.Tools, path)
		}
	}
	return c
}

// judge decides a recorded call anew.
func (p *player) judge(run *playedRun, c *playedCall, r ledger.Record) Replayed {
	one := Replayed{Case: Case{Run: r.Run, Call: r.Call, Time: r.Time, Args: r.Args, Answer: c.answer}, Server: r.Server, Tool: r.Tool, Profile: r.Profile,
		Was: wasDecided(r), WasRule: rulePlayed(r), Sent: r.Event == ledger.Intent, Asked: c.asked && !c.remembered, Yes: c.yes, No: c.no}
	if p.o.By != "" {
		one.Profile = p.o.By
	}
	shown := p.memory.read(r)
	call := shown.call
	call.Run = c.others
	call.Changed = "" // what was accepted since is not known
	call.Meaning = run.met(r, call.Meaning)
	c.meaning, c.labels = call.Meaning, call.Flow.Labels
	missing := profiles.Gaps{Args: shown.cut, Tool: !shown.listed}
	p.flow(run, c, r, &call, &missing)
	one.Made = call
	profile := p.memory.profile(one.Profile)
	if profile == nil {
		one.Gap = GapProfile
		return one
	}
	strict, loose := p.memory.between(one.Profile, profile, call, r, missing)
	one.Decided, one.Is = strict, isDecided(strict)
	if other := isDecided(loose); other != one.Is {
		one.Gap = p.memory.cause(profile, call, shown, missing)
	}
	if least := floor(r); slices.Index(dispositions, least) > slices.Index(dispositions, one.Is) || least == "deny" {
		one.Is, one.Gap = least, ""
		one.Decided.Reasons = []profiles.Reason{{Detail: one.WasRule}}
	}
	if one.Gap != "" {
		one.Is = ""
	}
	return one
}

// flow adds where the data of a call comes from and goes.
func (p *player) flow(run *playedRun, c *playedCall, r ledger.Record, call *profiles.Call, missing *profiles.Gaps) {
	content, context := p.o.Policy.Flows()
	f := &profiles.FlowFacts{Labels: call.Flow.Labels}
	m := call.Meaning
	reads := m != nil && m.Accepted && slices.Equal(m.Effects, []string{"read"})
	leaves := m != nil && m.Accepted && m.Leaves()
	carried := map[profiles.CarriedFact]bool{}
	for _, found := range r.Sources {
		from, ok := run.sent[found.Call]
		labels := profiles.Labels{Has: found.Labels, Unknown: found.Unlabelled}
		if now := p.memory.labels(from); ok && from.server != "" && now.listed {
			labels = now.Labels
		}
		says := "something of what " + join("__", from.server, from.tool) + " answered"
		if found.Kind != "name" && !(reads && from.server == r.Server) {
			f.Content = append(f.Content, profiles.FlowFact{Labels: labels, Says: says, Undecided: found.Kind == ledger.Lost})
		}
		if leaves && (found.Kind == "" || found.Kind == "name") && from.server != r.Server {
			carried[profiles.CarriedFact{Param: found.Argument, What: "what " + from.server + " answered"}] = true
		}
	}
	c.content = f.Content
	if content && f.Labels.May(profiles.LabelExternal) {
		f.Content = append(slices.Clone(f.Content), run.stored[r.Server]...)
	}
	if context {
		f.Context = p.memory.marks(run.context.read)
		missing.Written = r.Written == nil && !run.private
		f.Written = r.Written != nil && *r.Written && !run.private
	}
	missing.Content = content && r.Looked != ledger.LookedAll && r.Server != "" && len(run.read) > 0
	missing.Carries = leaves && r.Looked == "" && slices.ContainsFunc(run.read, func(s source) bool { return s.server != r.Server })
	if call.Flow = f; len(carried) > 0 {
		is := *m
		is.Carries = slices.Clone(m.Carries)
		for fact := range carried {
			is.Carries = append(is.Carries, fact)
		}
		slices.SortFunc(is.Carries, func(a, b profiles.CarriedFact) int { return strings.Compare(a.Param+a.What, b.Param+b.What) })
		call.Meaning = &is
	}
}

// store notes what a call leaves at a server that gives it to nobody: a later call may.
func (p *player) store(run *playedRun, c *playedCall, r ledger.Record) {
	if !c.labels.May(profiles.LabelExternal) && len(run.stored[r.Server]) < 16 {
		run.stored[r.Server] = append(run.stored[r.Server], c.content...)
	}
}

// ended notes that a call has answered: what it read, and where a browser is.
func (p *player) ended(run *playedRun, r ledger.Record) {
	run.facts.Bytes += int64(r.Received)
	c := run.open[r.Call]
	delete(run.open, r.Call)
	if r.Server == "" || r.Outcome == ledger.Unknown && r.Received == 0 {
		return
	}
	from := source{r.Server, r.Tool}
	if !slices.Contains(run.read, from) {
		run.read = append(run.read, from)
	}
	if !slices.Contains(run.context.read, from) {
		run.context.read = append(run.context.read, from)
	}
	run.context.last = r.Time
	if c != nil && c.meaning != nil && r.Outcome == ledger.Done {
		run.context.move(r.Server, c.meaning)
	}
}

// pageParam stands for the argument in facts about the host of the page that is open.
const pageParam = "page"

// met returns what a call means to its session: who of those that it names is not new,
// and on which page it acts.
func (run *playedRun) met(r ledger.Record, m *profiles.Meaning) *profiles.Meaning {
	if m == nil || len(m.Hosts)+len(m.Recipients) == 0 {
		return m
	}
	is := *m
	is.Hosts, is.Recipients = slices.Clone(m.Hosts), slices.Clone(m.Recipients)
	for i := range is.Hosts {
		h := &is.Hosts[i]
		if at := run.context.pages[r.Server]; h.Param == pageParam && at != "" {
			h.Name, h.Doubt, h.Bare = at, "", true
		}
		h.New = h.Name == "" || !run.context.met["host "+h.Name]
	}
	for i := range is.Recipients {
		is.Recipients[i].New = !run.context.met[recipientOf(r.Server, is.Recipients[i])]
	}
	return &is
}

func recipientOf(server string, f profiles.RecipientFact) string {
	return "recipient of " + server + " " + strings.ToLower(f.Name)
}

// meet notes whom a session has met by a call that a person approved.
func (c *playedContext) meet(server string, m *profiles.Meaning) {
	for _, h := range m.Hosts {
		if h.Name != "" {
			c.met["host "+h.Name] = true
		}
	}
	for _, r := range m.Recipients {
		c.met[recipientOf(server, r)] = true
	}
}

// move notes which page is open after a call.
func (c *playedContext) move(server string, m *profiles.Meaning) {
	runs := slices.Contains(m.Effects, "execute")
	named := slices.DeleteFunc(slices.Clone(m.Hosts), func(h profiles.HostFact) bool { return h.Param == pageParam })
	acts := len(named) < len(m.Hosts)
	switch {
	case len(named) == 1 && !runs && len(m.Unknown) == 0:
		c.pages[server] = named[0].Name
	case len(named) > 0 || acts && (runs || slices.Contains(m.Effects, "read")):
		delete(c.pages, server)
	}
}
