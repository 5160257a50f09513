package profiles

import (
	"fmt"
	"slices"
	"strings"
)

// A FlowSpec is one rule about where data may flow, as written: what was read from a tool
// with the label From may not reach a tool with the label To unasked, or at all.
type FlowSpec struct {
	// From and To are labels.
	From *string `json:"from,omitempty"`
	To   *string `json:"to,omitempty"`
	// Action is ask or deny.
	Action *string `json:"action,omitempty"`
	// By is content: what was read is found in the arguments; or context: anything was
	// read from there at all.
	By *string `json:"by,omitempty"`
	// Reason is a sentence for the person who is asked and for the script that is refused.
	Reason *string `json:"reason,omitempty"`
	// Observe puts the flow on trial: see [Observe].
	Observe *bool `json:"observe,omitempty"`
}

// The labels that files of known servers give tools. Whether a tool has one of these is not known
// where nobody has said so; any other is the configuration's own, and it gives them all.
const (
	LabelPrivate   = "private"
	LabelUntrusted = "untrusted"
	LabelExternal  = "external"
)

var givenLabels = []string{LabelPrivate, LabelUntrusted, LabelExternal}

// Labels are what tools are called in rules about flows.
type Labels struct {
	Has []string
	// Unknown reports that nobody has said which of the labels of known servers there are.
	Unknown bool
}

// has says whether the label is one of them. One that nobody knows is undecided, which
// counts as yes: a rule about flows only ever asks or denies.
func (l Labels) has(label string) truth {
	switch {
	case slices.Contains(l.Has, label):
		return yes
	case l.Unknown && slices.Contains(givenLabels, label):
		return undecided
	}
	return no
}

// May says whether the label is one of them, or may be.
func (l Labels) May(label string) bool { return l.has(label) != no }

// A FlowFact is one source that a call may carry something of, or that was read before it.
type FlowFact struct {
	// Labels are those of the tool that was read from.
	Labels Labels
	// Says names what was found and where it was read; it quotes nothing of it.
	Says string
	// Undecided reports that nobody knows whether the call has something of it: not everything is
	// remembered that was read there.
	Undecided bool
}

// FlowFacts are what is known of where a call's data comes from and goes.
type FlowFacts struct {
	// Labels are those of the tool that is called.
	Labels Labels
	// Content are the sources of which something is in the arguments, Context those that were
	// read before, in the run, the session or by the principal.
	Content []FlowFact
	Context []FlowFact
	// Written reports that the script has the arguments as one literal, that nothing that may be private was
	// read by those whose context it shares before it began, and that it has not sent many others since.
	Written bool
}

// A flow is one compiled rule about flows.
type flow struct {
	label    string // flows/N
	profile  string // where it is written
	at       string // JSON pointer
	spec     *FlowSpec
	observed bool
	from, to string
	says     Disposition
	content  bool
	reason   string
}

// The words of a flow.
const (
	byContent = "content"
	byContext = "context"
)

var byWords = []string{byContent, byContext}

// ValidLabel reports whether a text is a label: small letters, digits, dashes and underscores.
func ValidLabel(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && s[0] >= 'a'
}

// by is how the flow looks for what was read.
func (f *flow) by() string {
	if f.content {
		return byContent
	}
	return byContext
}

// applies says whether a flow applies to a call, and by which facts.
func (f *flow) applies(facts *FlowFacts) (is truth, says []string) {
	if facts == nil {
		return undecided, []string{"nobody looked where the call's data comes from"}
	}
	to := facts.Labels.has(f.to)
	if to == no {
		return no, nil
	}
	all := facts.Context
	if f.content {
		all = facts.Content
	}
	is = no
	for _, fact := range all {
		one := to.and(fact.Labels.has(f.from))
		if one == no {
			continue
		}
		if fact.Undecided {
			one = undecided
		}
		if is != yes {
			is = one
		}
		if !slices.Contains(says, fact.Says) {
			says = append(says, fact.Says)
		}
	}
	return is, says
}

// missed says why the flow does not apply to a call.
func (f *flow) missed(facts *FlowFacts) string {
	switch {
	case facts == nil || facts.Labels.has(f.to) == no:
		return "the tool is not labelled " + f.to
	case f.content:
		return "nothing labelled " + f.from + " was found in the arguments"
	default:
		return "nothing labelled " + f.from + " was read before"
	}
}

// mayCarry reports whether a flow may apply because nobody looked.
func (t *tally) mayCarry(f *flow) bool {
	g := t.call.gaps
	return g != nil && g.Content && !g.loose && f.content && (t.call.Flow == nil || t.call.Flow.Labels.has(f.to) != no)
}

// maxSources bounds how many sources a reason names.
const maxSources = 3

// tryFlows adds what the rules about flows ask for. It comes after the default, so that a call
// that is denied because nothing names it stays denied.
func (t *tally) tryFlows() error {
	for _, f := range t.p.flows {
		is, says := f.applies(t.call.Flow)
		if is == no && t.mayCarry(f) {
			is, says = undecided, []string{"what nobody looked for"}
		}
		if t.trials != nil {
			outcome := f.missed(t.call.Flow)
			if is != no {
				outcome = "matches: " + f.says.String()
			}
			t.tried(Trial{Kind: KindFlow, Profile: f.profile, Rule: f.label, Patterns: []string{f.from + " to " + f.to + " by " + f.by()}, Matched: is != no, Outcome: outcome})
		}
		if is == no {
			continue
		}
		detail := strings.Join(says[:min(len(says), maxSources)], "; ")
		if more := len(says) - maxSources; more > 0 {
			detail += fmt.Sprintf("; and %d more", more)
		}
		if f.content {
			detail += ", go to " + t.facts.path
		} else {
			detail += " before, and " + t.facts.path + " is " + f.to
		}
		t.carried = t.carried || f.content && f.says == Ask
		t.context = t.context || !f.content && f.says == Ask
		t.add(Reason{Kind: KindFlow, Disposition: f.says, Profile: f.profile, Rule: f.label, Text: f.reason, Undecided: is == undecided, Detail: f.from + ": " + detail})
	}
	return nil
}

// Flows identifies the rules about flows that a decision follows; empty for none. What was approved
// under some of them is not approved under others.
func (d Decision) Flows() string {
	var all []string
	for _, r := range d.Reasons {
		if r.Kind == KindFlow {
			from, _, _ := strings.Cut(r.Detail, ":")
			all = appendNew(all, " "+r.Profile+"/"+r.Rule+" "+from)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// Flows says which facts about flows the profile needs, also for what it only observes: content where it looks for what was read in
// the arguments, context where it counts what was read at all.
func (p *Profile) Flows() (content, context bool) {
	if p == nil {
		return false, false
	}
	p = p.full()
	for _, f := range p.flows {
		content, context = content || f.content, context || !f.content
	}
	for _, r := range p.rules {
		for _, name := range r.flowReads() {
			content, context = content || name == "flow.content", context || name == "flow.context" || name == "flow.written"
		}
	}
	return content, context
}

// askedInContext reports whether people are asked because of what was read before.
func (t *tally) askedInContext() bool {
	return t.call.Flow != nil && len(t.call.Flow.Context) > 0 && (t.context || slices.ContainsFunc(t.applied, func(r applied) bool {
		return r.action.disposition() == Ask && slices.Contains(flowReads(r.when), "flow.context")
	}))
}

// flowReads returns which variables about flows the expressions of a rule look at.
func (r *rule) flowReads() []string {
	all := flowReads(r.when)
	for _, c := range r.checks {
		all = append(all, c.flows...)
	}
	return all
}

// flowReads returns which of them a condition looks at.
func flowReads(when condition) (all []string) {
	var look func(c condition)
	look = func(c condition) {
		switch c := c.(type) {
		case *expression:
			all = append(all, c.flows...)
		case conjunction:
			for _, one := range c {
				look(one)
			}
		}
	}
	look(when)
	return all
}

// labelsOf returns the labels of sources, each once. It reports false if some are not known: an
// expression that looks at them is undecided then.
func labelsOf(facts []FlowFact) (all []string, ok bool) {
	ok = true
	all = []string{}
	for _, f := range facts {
		ok = ok && !f.Undecided && !f.Labels.Unknown
		for _, label := range f.Labels.Has {
			if !slices.Contains(all, label) {
				all = append(all, label)
			}
		}
	}
	slices.Sort(all)
	return all, ok
}
