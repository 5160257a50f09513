package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// trials count what is only observed.
type trials struct {
	total map[string]*Trial
	rules map[trialKey]*Trial
	runs  map[string]map[trialKey]bool // in which runs under way a key was counted
}

// A trialKey is what would have come of calls, and the rule that is the reason; without a
// rule, whatever the reason.
type trialKey struct{ would, rule string }

func newTrials() *trials {
	return &trials{map[string]*Trial{}, map[trialKey]*Trial{}, map[string]map[trialKey]bool{}}
}

// add counts the call of an intent or a refusal.
func (t *trials) add(r ledger.Record) {
	if r.Would == "" {
		return
	}
	if t.total[r.Would] == nil {
		t.total[r.Would] = &Trial{}
	}
	t.count(t.total[r.Would], r.Run, trialKey{would: r.Would})
	var counted []trialKey
	for _, line := range r.Reasons {
		would, rule, ok := observedRule(line)
		key := trialKey{would, rule}
		if !ok || slices.Contains(counted, key) {
			continue
		}
		counted = append(counted, key)
		if t.rules[key] == nil {
			t.rules[key] = &Trial{}
		}
		t.count(t.rules[key], r.Run, key)
	}
}

// count counts one call of a run.
func (t *trials) count(to *Trial, run string, key trialKey) {
	to.Calls++
	if t.runs[run] == nil {
		t.runs[run] = map[trialKey]bool{}
	}
	if !t.runs[run][key] {
		t.runs[run][key] = true
		to.Runs++
	}
}

// observed returns the rules, the busiest first.
func (t *trials) observed() []Observed {
	all := []Observed{}
	for key, n := range t.rules {
		all = append(all, Observed{key.rule, key.would, *n})
	}
	slices.SortFunc(all, func(a, b Observed) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Would, b.Would))
	})
	return all
}

// observedRule reads a reason that says what would have come of a call: what, and by
// which rule, flow or list entry.
func observedRule(line string) (would, rule string, ok bool) {
	would, reason, ok := profiles.CutWould(line)
	if !ok {
		return "", "", false
	}
	if flow, rest, is := strings.Cut(reason, ": "); is && strings.HasPrefix(flow, "flows/") {
		if i := strings.LastIndex(rest, " [profile "); i >= 0 {
			flow += rest[i:]
		}
		return would, flow, true
	}
	return would, ruleOf(reason), true
}

// would says what would have come of a call, to follow what is said of it.
func would(is string) string {
	switch is {
	case "":
		return ""
	case profiles.ActionManual.String():
		return ", would ask by hand"
	}
	return ", would " + Shown(is)
}

// wouldHave says in words what would have come of calls.
var wouldHave = []struct{ would, says string }{
	{"ask", "asked %s in %s"}, {"manual", "asked %s in %s by hand"}, {"deny", "denied %s in %s"}, {"allow", "let pass %s in %s"}, {"notify", "announced %s in %s"},
}

// wouldSay says what would have come of calls: "asked 12 calls in 3 runs, denied 1 call in 1 run".
func (s *Stats) wouldSay() string {
	var all []string
	for _, w := range wouldHave {
		if n := s.Would[w.would]; n != nil {
			all = append(all, fmt.Sprintf(w.says, number(n.Calls, "call"), number(n.Runs, "run")))
		}
	}
	return strings.Join(all, ", ")
}
