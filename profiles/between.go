package profiles

import (
	"slices"
	"strings"
)

// A call that is read back from a log may have values that the log does not show. What
// becomes of it then is not one decision but lies between two, which are the same if
// nothing that is missing matters.

// Between returns the strictest and the loosest decision that could have been made on a
// call with these gaps. They have the same disposition if it is the same whatever is
// missing. A file of the bridge itself is not looked for in what is missing.
func (p *Profile) Between(call Call, missing Gaps) (strict, loose Decision) {
	g := gaps{Gaps: missing, masked: maskedIn("", call.Args)}
	if len(g.masked) == 0 && g.Gaps == (Gaps{}) {
		d := p.Decide(call)
		return d, d
	}
	strictly := g
	one := call
	one.gaps, one.Meaning = &strictly, call.Meaning.carryingAny(&strictly)
	g.loose = true
	other := call
	other.gaps = &g
	return p.decide(&one, stepsBetween, nil), p.decide(&other, stepsBetween, nil)
}

// stepsBetween are the steps of a decision on a call with gaps.
var stepsBetween = slices.Concat(steps[:3], []func(*tally) error{(*tally).forgive, (*tally).weighRisk, (*tally).weighGap}, steps[4:])

// maskedIn lists where Masked values stand in v.
func maskedIn(at string, v any) (all []string) {
	switch v := v.(type) {
	case Masked:
		return []string{at}
	case map[string]any:
		for _, name := range sortedKeys(v) {
			all = append(all, maskedIn(strings.TrimPrefix(at+"."+name, "."), v[name])...)
		}
	case []any:
		for _, element := range v {
			all = append(all, maskedIn(at, element)...)
		}
	}
	return all
}

// carryingAny is the meaning of a call that may carry away all that is missing.
func (m *Meaning) carryingAny(g *gaps) *Meaning {
	if m == nil || !m.Leaves() {
		return m
	}
	is := *m
	is.Carries = slices.Clone(m.Carries)
	for _, at := range g.masked {
		is.Carries = append(is.Carries, CarriedFact{Param: at, What: maskedText, Secret: true})
	}
	if g.Carries {
		is.Carries = append(is.Carries, CarriedFact{Param: "an argument", What: "what nobody looked for"})
	}
	return &is
}

// concerns reports whether a condition that could not be decided, as why says, might be if
// nothing were missing.
func (g *gaps) concerns(call *Call, c condition, why string) bool {
	if g == nil {
		return false
	}
	switch c := c.(type) {
	case conjunction:
		return slices.ContainsFunc(c, func(one condition) bool { return g.concerns(call, one, why) })
	case *meaningTest, knownTest:
		return g.open(call)
	case *expression:
		reads := func(name string) bool { return slices.Contains(c.flows, name) }
		if g.Content && reads("flow.content") || g.Written && reads("flow.written") || g.Tool {
			return true
		}
	}
	return g.Args || why == maskedText || slices.ContainsFunc(c.reads(), g.hides)
}

// hides reports whether a name that a condition reads is that of a Masked value, or of
// something around it.
func (g *gaps) hides(n nameRead) bool {
	return slices.ContainsFunc(g.masked, func(at string) bool {
		return slices.ContainsFunc(strings.Split(at, "."), func(name string) bool { return FoldName(name) == n.folded })
	})
}

// settle decides, for the loosest decision, a condition of a rule that could not be.
func (t *tally) settle(r *rule, is truth, why string) truth {
	if g := t.call.gaps; is != undecided || g == nil || !g.loose || !g.concerns(t.call, r.when, why) {
		return is
	}
	if r.action.disposition() == Allow {
		return yes
	}
	return no
}

// forgive takes what is missing for harmless, for the loosest decision: rules have been
// tried, and the risk comes next.
func (t *tally) forgive() error {
	if g := t.call.gaps; g.loose && t.call.Meaning != nil && g.open(t.call) {
		is := *t.call.Meaning
		is.Unknown = nil
		call := *t.call
		call.Meaning = &is
		t.call = &call
	}
	return nil
}

// weighGap sets the risk of a tool of which only the name is known.
func (t *tally) weighGap() error {
	if !t.call.gaps.Tool || slices.ContainsFunc(t.applied, func(a applied) bool { return a.risk != 0 }) {
		return nil
	}
	if t.d.Risk = High; t.call.gaps.loose {
		t.d.Risk = Low
	}
	return nil
}
