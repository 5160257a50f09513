package gate

import (
	"cmp"
	"fmt"
	"strconv"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
)

// A call is judged by what its run began with and by what holds now: an edit of the
// configuration can tighten a run that is under way, across every pause and restart,
// and never loosen it.

// decide judges c by the policy that the run began with and by today's, and
// remembers which of its values rules hide.
func (r *Run) decide(view *View, c *call) {
	if c.meaning = r.meaning(view, c); c.began == nil {
		c.began = c.meaning
	}
	c.carries(view, &r.read)
	c.flow = data{r}.flow(view, c)
	c.decision = r.tally.judge(c, func(others profiles.RunFacts) profiles.Decision { return r.judge(view, c, others) })
	r.secrets.learn(c.args, c.displayOptions(nil))
}

// judge returns the decision on c, if others are the run's other calls: the
// strictest of all profiles that bind the run.
func (r *Run) judge(view *View, c *call, others profiles.RunFacts) profiles.Decision {
	facts := r.facts(view, c, others)
	decision := r.decideBy(view, r.Profile, facts)
	for _, name := range r.host.Profiles() {
		decision = profiles.Stricter(decision, r.decideBy(view, name, facts))
	}
	if t, ok := view.unreviewed(c.tool); ok && t.Quarantined {
		decision = profiles.Stricter(quarantined(t, decision), decision)
	}
	if s := r.host.Scope(); !Within(s, c.tool.Server) {
		decision = profiles.Stricter(outOfScope(s.Refuses(c.tool.Server), decision), decision)
	}
	return decision
}

// decideBy judges c by a profile, both as it is in the view and as it was when the
// run began.
func (r *Run) decideBy(view *View, name string, facts []profiles.Call) profiles.Decision {
	today, ok := view.profile(name)
	began, had := profileOf(r.Policy, name)
	if !ok || !had && name == r.Profile {
		return gone(name)
	}
	decision := decideAll(today, facts)
	if had && began != today {
		decision = profiles.Stricter(decision, decideAll(began, facts))
	}
	return decision
}

// decideAll judges a call by every definition of its tool; the strictest decision
// counts.
func decideAll(p *profiles.Profile, facts []profiles.Call) profiles.Decision {
	decision := p.Decide(facts[0])
	for _, more := range facts[1:] {
		decision = profiles.Stricter(decision, p.Decide(more))
	}
	return decision
}

// quarantined returns the decision on an unreviewed tool under quarantine.
func quarantined(t UnreviewedTool, d profiles.Decision) profiles.Decision {
	return profiles.Decision{Disposition: profiles.Deny, Risk: d.Risk, Profile: d.Profile, Revision: d.Revision,
		Reasons: []profiles.Reason{{Kind: profiles.KindQuarantine, Disposition: profiles.Deny, Detail: "it is quarantined: " + t.Why}}}
}

// gone returns the decision of a profile that no longer exists.
func gone(name string) profiles.Decision {
	return profiles.Decision{Disposition: profiles.Deny, Risk: profiles.Critical, Profile: name,
		Reasons: []profiles.Reason{{Kind: profiles.KindPolicyError, Disposition: profiles.Deny, Detail: "there is no such profile any more"}}}
}

// facts returns the facts of a call: see View.Facts.
func (r *Run) facts(view *View, c *call, others profiles.RunFacts) []profiles.Call {
	facts := view.Facts(c.tool)
	_, began := r.Servers[c.tool.Server]
	for i := range facts {
		if began && !r.Trusted[c.tool.Server] && !c.tool.Method { // trust given later applies to later runs
			facts[i].TrustAnnotations = false
		}
		facts[i].Args, facts[i].Run, facts[i].Meaning, facts[i].Flow = c.args.Value(), others, c.meaning, cmp.Or(c.flow, facts[i].Flow)
	}
	return facts
}

// check runs the checks of the rules that match, after everything that can
// allow a call and before it is sent. It returns the first that fails.
func (r *Run) check(view *View, c *call) string {
	for _, result := range r.checks(view, c) {
		if !result.Passed {
			return strconv.Quote(result.Expr)
		}
	}
	return ""
}

// checks runs the checks of the rules that match, of every profile that binds
// the run, as of now.
func (r *Run) checks(view *View, c *call) (results []profiles.CheckResult) {
	facts := r.facts(view, c, r.tally.others(c))
	for _, p := range r.bound(view) {
		for _, one := range facts {
			results = append(results, p.Checks(one)...)
		}
	}
	return results
}

// moved says that the server of c is not the one that c is meant for, which is the
// one of that name that the run began with, if there was one.
func (c *call) moved(r *Run, now string) error {
	began, known := r.Servers[c.tool.Server]
	if known && began != now || c.identity != now {
		return refused(c, approval.Stale, fmt.Sprintf("server %s became another one since the run began", c.tool.Server), true)
	}
	return nil
}
