package profiles

import (
	"fmt"
	"slices"
	"strconv"
)

// observed warns of what is only observed: what is warned of when it is enforced, and
// where it says nothing.
func (c *checker) observed() {
	at := pointer("/profiles", c.p.name) + "/observe"
	if o := c.spec.Observe; o != nil {
		for i, name := range o.Lists {
			if !c.spec.says(name) {
				c.warn(at+"/"+strconv.Itoa(i), fmt.Sprintf("the profile has no %s of its own, so nothing is observed", name), "")
			}
		}
		if says := slices.ContainsFunc(observable, c.spec.says) || len(c.spec.Rules)+len(c.spec.Flows) > 0 || c.spec.observesTemplate(); o.All && !says {
			c.warn(at, "the profile says nothing itself, so nothing is observed", "what it inherits from another profile of the configuration is observed where that one says so")
		}
	}
	if c.p.shadow == nil {
		return
	}
	full := &checker{p: c.p.shadow, spec: c.spec, tools: c.tools}
	full.run()
	for _, w := range full.warnings {
		if !slices.Contains(c.warnings, w) && !c.isEnforced(w.Path) {
			c.warnings = append(c.warnings, w)
		}
	}
	c.pointless()
}

// says reports whether the profile has a list, or sets its default.
func (s *ProfileSpec) says(list string) bool {
	switch list {
	case "allowlist":
		return s.Allowlist != nil
	case "denylist":
		return len(s.Denylist) > 0
	case "asklist":
		return len(s.Asklist) > 0
	}
	return s.Default != nil
}

// isEnforced reports whether a pointer is into a list entry, rule or flow that is enforced:
// what is said of it in company of what is only observed is not true of it.
func (c *checker) isEnforced(at string) bool {
	in := func(of string) bool { return at == of || len(at) > len(of) && at[:len(of)+1] == of+"/" }
	listed := func(e listEntry) bool { return in(e.at) }
	return slices.ContainsFunc(c.p.deny, listed) || slices.ContainsFunc(c.p.ask, listed) || slices.ContainsFunc(c.p.allow, listed) ||
		slices.ContainsFunc(c.p.rules, func(r *rule) bool { return in(r.at) && !r.observed }) ||
		slices.ContainsFunc(c.p.flows, func(f *flow) bool { return in(f.at) })
}

// pointless warns of what is observed and can never differ from what is enforced.
func (c *checker) pointless() {
	const strict = "what is enforced is as strict already, so observing it says nothing"
	for _, list := range []struct {
		says    Disposition
		entries []listEntry
	}{{Deny, c.p.shadow.deny}, {Ask, c.p.shadow.ask}} {
		for _, e := range list.entries {
			if e.observed && e.profile == c.p.name && covered(e.pattern, c.p.patternsWith(list.says)) {
				c.warn(e.at, strict, "")
			}
		}
	}
	for _, r := range c.p.shadow.rules {
		switch says := r.action.disposition(); {
		case !r.observed || r.profile != c.p.name:
		case says == 0 && r.risk == 0 && len(r.checks) == 0 && isTrue(r.spec.Observe):
			c.warn(r.at+"/observe", "the rule only says how people are asked, or what is hidden: observing it says nothing", "")
		case len(r.checks) == 0 && (says == Deny || r.action == ActionAsk) && allCovered(r.tools, c.p.patternsWith(says)):
			c.warn(r.at, strict, "")
		}
	}
	for _, f := range c.p.shadow.flows {
		if f.observed && f.profile == c.p.name && slices.ContainsFunc(c.p.flows, f.coveredBy) {
			c.warn(f.at, strict, "")
		}
	}
}
