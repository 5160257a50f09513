package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// Stats say how the gate is used, by a log.
type Stats struct {
	Rows  int       `json:"rows"`
	From  time.Time `json:"from,omitzero"` // the first row's time
	To    time.Time `json:"to,omitzero"`   // the last row's time
	Runs  Runs      `json:"runs"`
	Calls Calls     `json:"calls"`

	Questions Questions `json:"questions"`
	// Rules are the rules and list entries that asked, the busiest first.
	Rules []RuleStats `json:"rules"`
	// Denials are the refused calls by tool and cause, the commonest first.
	Denials []Denial `json:"denials"`
	// Failures are the questions that were not answered by a yes or no, by
	// why: timeout, no_approver, rate_limited and the like.
	Failures map[string]int `json:"failures"`
	// Would counts the calls of which something else would have come if what policy only
	// observes were enforced, by what: allow, notify, ask, manual, deny. Observed are the
	// rules and list entries that are the reason, the busiest first.
	Would    map[string]*Trial `json:"would"`
	Observed []Observed        `json:"observed"`

	asked map[askKey]*asks
	used  map[string]bool // ruleOf of every reason of every decision
}

// Runs counts runs by how they ended.
type Runs struct {
	All     int `json:"all"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Stopped int `json:"stopped"`
	Open    int `json:"open"` // no end was written
}

// Calls counts calls by what became of them.
type Calls struct {
	All     int `json:"all"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Refused int `json:"refused"`
	Unknown int `json:"unknown"` // sent, and the outcome is not known or not written
}

// Questions counts what was asked and how it was answered.
type Questions struct {
	Asked int `json:"asked"`
	Yes   int `json:"yes"` // by a person
	No    int `json:"no"`  // by a person
	// Remembered counts the calls that an earlier yes answered, Fallback those
	// that the profile's elicitationFallback did.
	Remembered int `json:"remembered"`
	Fallback   int `json:"fallback"`
	// Rate is the share of Yes in Yes and No; 0 if both are 0.
	Rate float64 `json:"approval_rate"`
	// Median and P90 are of the times that people took to decide.
	Median time.Duration `json:"median_ns"`
	P90    time.Duration `json:"p90_ns"`
}

// RuleStats are the questions of one rule or list entry.
type RuleStats struct {
	Rule  string `json:"rule"` // as reasons name it, with its profile
	Asked int    `json:"asked"`
	Yes   int    `json:"yes"`
	No    int    `json:"no"`
}

// A Trial counts the calls that something observed would have changed.
type Trial struct {
	Calls int `json:"calls"`
	Runs  int `json:"runs"` // in which they were
}

// Observed are the calls that one rule or list entry would have changed that is only
// observed.
type Observed struct {
	Rule  string `json:"rule"`  // as reasons name it, with its profile
	Would string `json:"would"` // what would have come of them
	Trial
}

// A Denial is why calls of one tool were refused.
type Denial struct {
	Tool  string `json:"tool"`
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// An askKey groups the questions that one suggestion can be about.
type askKey struct{ profile, rule, server, tool string }

// asks holds the answered questions of a group.
type asks struct {
	reasons []string // of the latest question; the first one decided
	manual  bool
	risks   []string
	yes, no []Case
	dropped int // beyond maxCases
}

// maxCases bounds the calls kept for the suggestions of one group.
const maxCases = 5000

// A Case is one call about which a person was asked, with the answer.
type Case struct {
	Run    string          `json:"run"`
	Call   int             `json:"call"`
	Time   time.Time       `json:"time"`
	Args   json.RawMessage `json:"args,omitempty"`
	Answer string          `json:"answer"`
}

// Measure computes the statistics of rows.
func Measure(rows Rows) (*Stats, error) {
	s := &Stats{Failures: map[string]int{}, asked: map[askKey]*asks{}, used: map[string]bool{}}
	rules := map[string]*RuleStats{}
	trials := newTrials()
	denials := map[Denial]int{}
	// What is open, by trace. An entry is dropped when it ends, so that a long log
	// takes no more memory than the calls that are under way at one time.
	open := map[string]bool{}               // runs
	sent := map[string]bool{}               // intents without an outcome
	questions := map[string]ledger.Record{} // without an answer
	answers := map[string]string{}          // denials whose refused call has not been read yet
	var waits []time.Duration
	for row, err := range rows {
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		r := row.Record
		id := trace(r)
		s.Rows++
		if s.From.IsZero() {
			s.From = r.Time
		}
		s.To = r.Time
		for _, reason := range r.Reasons {
			if _, observed, ok := observedRule(reason); ok {
				s.used[observed] = true
			}
			s.used[ruleOf(reason)] = true
		}
		switch r.Event {
		case ledger.RunStarted:
			s.Runs.All++
			open[r.Run] = true
		case ledger.RunEnded:
			if !open[r.Run] {
				s.Runs.All++ // its beginning is not among these rows
			}
			delete(open, r.Run)
			delete(trials.runs, r.Run)
			switch r.Outcome {
			case ledger.Done:
				s.Runs.Done++
			case ledger.Stopped:
				s.Runs.Stopped++
			default:
				s.Runs.Failed++
			}
		case ledger.Intent:
			trials.add(r)
			s.Calls.All++
			sent[id] = true
		case ledger.Outcome:
			if !sent[id] {
				s.Calls.All++
			}
			delete(sent, id)
			switch r.Outcome {
			case ledger.Done:
				s.Calls.Done++
			case ledger.Unknown:
				s.Calls.Unknown++
			default:
				s.Calls.Failed++
			}
		case ledger.Refusal:
			trials.add(r)
			s.Calls.All++
			s.Calls.Refused++
			denials[Denial{Tool: r.Path(), Why: whyRefused(r, answers[id])}]++
			if _, answered := answers[id]; !answered {
				if why := refusedFor(r); why != "" && why != "denied" {
					s.Failures[why]++
				}
			}
			delete(answers, id)
		case ledger.Asked:
			s.Questions.Asked++
			questions[id] = r
			rule(rules, r).Asked++
		case ledger.Verdict:
			if !actedOn(r) {
				break
			}
			asked, wasAsked := questions[id]
			delete(questions, id)
			if !approved(r) {
				answers[id] = refusedFor(r)
			}
			switch {
			case byPerson(r):
				if approved(r) {
					s.Questions.Yes++
					rule(rules, r).Yes++
				} else {
					s.Questions.No++
					rule(rules, r).No++
				}
				switch {
				case r.Wait > 0:
					waits = append(waits, r.Wait)
				case wasAsked:
					waits = append(waits, max(0, r.Time.Sub(asked.Time)))
				}
				s.take(r, asked)
			case approved(r) && r.Channel == "grant":
				s.Questions.Remembered++
			case approved(r):
				s.Questions.Fallback++
			default:
				s.Failures[cmp.Or(refusedFor(r), "no reason")]++
			}
		}
	}
	s.Runs.Open, s.Calls.Unknown = len(open), s.Calls.Unknown+len(sent)
	if n := s.Questions.Yes + s.Questions.No; n > 0 {
		s.Questions.Rate = float64(s.Questions.Yes) / float64(n)
	}
	slices.Sort(waits)
	s.Questions.Median, s.Questions.P90 = quantile(waits, 50), quantile(waits, 90)
	s.Rules = []RuleStats{}
	for _, r := range rules {
		s.Rules = append(s.Rules, *r)
	}
	slices.SortFunc(s.Rules, func(a, b RuleStats) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Yes+b.No, a.Yes+a.No), cmp.Compare(a.Rule, b.Rule))
	})
	s.Would, s.Observed = trials.total, trials.observed()
	s.Denials = []Denial{}
	for d, n := range denials {
		d.Count = n
		s.Denials = append(s.Denials, d)
	}
	slices.SortFunc(s.Denials, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Why, b.Why))
	})
	return s, nil
}

// rule returns the statistics of the rule that decided on r, and adds them if need be.
func rule(rules map[string]*RuleStats, r ledger.Record) *RuleStats {
	name := decidedBy(r)
	if rules[name] == nil {
		rules[name] = &RuleStats{Rule: name}
	}
	return rules[name]
}

// decidedBy is the rule or list entry that decided on r, which is in its first reason.
func decidedBy(r ledger.Record) string {
	if len(r.Reasons) == 0 {
		return "no rule"
	}
	return ruleOf(r.Reasons[0])
}

// whyRefused is why a call was refused: the answer, if somebody was asked, else the
// rule.
func whyRefused(r ledger.Record, answer string) string {
	switch {
	case answer != "":
		return answer
	case r.Disposition == profiles.Deny.String():
		return decidedBy(r)
	case r.Disposition == "":
		return "no such tool, or arguments that could not be read"
	}
	return cmp.Or(refusedFor(r), "arguments that the tool does not take, a check, or the end of the run")
}

// quantile is the value that percent of the sorted values do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// take keeps a person's answer for the suggestions.
func (s *Stats) take(r, asked ledger.Record) {
	if len(r.Reasons) == 0 {
		r.Reasons = asked.Reasons
	}
	args := r.Args
	if len(args) == 0 {
		args = asked.Args
	}
	if len(r.EditedArgs) > 0 { // what was approved are these
		args = r.EditedArgs
	}
	key := askKey{r.Profile, decidedBy(r), r.Server, r.Tool}
	a := s.asked[key]
	if a == nil {
		a = &asks{}
		s.asked[key] = a
	}
	a.reasons = r.Reasons
	if !slices.Contains(a.risks, r.Risk) {
		a.risks = append(a.risks, r.Risk)
	}
	for _, reason := range r.Reasons {
		_, _, observed := observedRule(reason)
		a.manual = a.manual || !observed && strings.Contains(reason, " (manual)")
	}
	c := Case{Run: r.Run, Call: r.Call, Time: r.Time, Args: args, Answer: r.Answer}
	to := &a.no
	if approved(r) {
		to = &a.yes
	}
	if len(*to) == maxCases {
		*to = (*to)[1:]
		a.dropped++
	}
	*to = append(*to, c)
}

// Unused returns the rules and list entries of a policy that no decision in the log
// names, written as in reasons.
func (s *Stats) Unused(spec profiles.Spec) []string {
	unused := []string{}
	for _, name := range slices.Sorted(maps.Keys(spec.Profiles)) {
		p := spec.Profiles[name]
		var all []profiles.Reason
		for kind, list := range map[profiles.Kind][]string{profiles.KindDenylist: p.Denylist, profiles.KindAsklist: p.Asklist, profiles.KindAllowlist: p.Allowlist} {
			for _, pattern := range list {
				all = append(all, profiles.Reason{Kind: kind, Pattern: pattern, Profile: name})
			}
		}
		for i, r := range p.Rules {
			label := fmt.Sprintf("rules/%d", i)
			if r.Name != nil {
				label = *r.Name
			}
			reason := profiles.Reason{Kind: profiles.KindRule, Rule: label, Profile: name}
			if r.Action != nil && reason.Action.UnmarshalText([]byte(*r.Action)) != nil {
				continue // the policy is not valid
			}
			all = append(all, reason)
		}
		var lines []string
		for _, r := range all {
			if line := ruleOf(r.String()); !s.used[line] {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		unused = append(unused, lines...)
	}
	return unused
}
