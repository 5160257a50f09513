package profiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What is only observed is on trial: it decides nothing, and what it would have decided is
// said. A profile with something on trial is built twice, as it is enforced and, in its
// shadow, with all that it has. Both decide each call; the first counts, and where the two
// differ the decision says so ([Decision.Would]).

// An Observe says what of a profile is only observed: all that it says itself, together
// with the template that it extends; or its lists and its default, by name. Of what it
// inherits from another profile of the configuration nothing is observed that is not
// observed there.
//
// Not on trial are, even so, its limits, how people are asked, and what its rules hide.
type Observe struct {
	All   bool
	Lists []string
}

// observable are the names that Lists may have.
var observable = []string{"allowlist", "denylist", "asklist", "default"}

// UnmarshalJSON reads true, false, or a list of names.
func (o *Observe) UnmarshalJSON(text []byte) error {
	*o = Observe{}
	switch d := newStrict(text); first(text) {
	case 't', 'f':
		return d.value(&o.All)
	case '[':
		o.Lists = []string{}
		return d.list(func(int) error {
			var name string
			err := d.text(&name)
			o.Lists = append(o.Lists, name)
			return err
		})
	}
	return errors.New(`want true, or what is observed, such as ["asklist", "default"]`)
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (o Observe) MarshalJSON() ([]byte, error) {
	if o.Lists != nil {
		return json.Marshal(o.Lists)
	}
	return json.Marshal(o.All)
}

// observes reports whether a list of the profile, or its default, is only observed.
func (s *ProfileSpec) observes(list string) bool {
	return s.Observe != nil && (s.Observe.All || slices.Contains(s.Observe.Lists, list))
}

// observesAll reports whether everything that the profile says is only observed.
func (s *ProfileSpec) observesAll() bool { return s.Observe != nil && s.Observe.All }

// observesTemplate reports whether what the profile extends is only observed, too.
func (s *ProfileSpec) observesTemplate() bool {
	return s.observesAll() && s.Extends != nil && strings.HasPrefix(*s.Extends, BuiltinPrefix)
}

// withoutObserved returns what is enforced of a profile as written. Observe stays where it
// says that the template is observed.
func (s *ProfileSpec) withoutObserved() ProfileSpec {
	c := *s
	if !s.observesTemplate() {
		c.Observe = nil
	}
	for name, list := range map[string]*[]string{"allowlist": &c.Allowlist, "denylist": &c.Denylist, "asklist": &c.Asklist} {
		if s.observes(name) {
			*list = nil
		}
	}
	if s.observes("default") {
		c.Default = nil
	}
	c.Rules, c.Flows = nil, nil
	for i := range s.Rules {
		r := &s.Rules[i]
		if !s.observesAll() && !isTrue(r.Observe) {
			c.Rules = append(c.Rules, *r)
		} else if len(r.Hidden) > 0 || r.Display != nil {
			c.Rules = append(c.Rules, *r.hides())
		}
	}
	for _, f := range s.Flows {
		if !s.observesAll() && !isTrue(f.Observe) {
			c.Flows = append(c.Flows, f)
		}
	}
	return c
}

// hides returns what a rule hides, and nothing else of it.
func (s *RuleSpec) hides() *RuleSpec {
	return &RuleSpec{Name: s.Name, Tools: s.Tools, Effects: s.Effects, Where: s.Where, Paths: s.Paths, Hosts: s.Hosts, Recipients: s.Recipients,
		Commands: s.Commands, Net: s.Net, Known: s.Known, When: s.When, Hidden: s.Hidden, Display: s.Display}
}

// checkObserve checks the names of what is observed.
func (b *builder) checkObserve(at string, o *Observe) {
	if o == nil {
		return
	}
	for i, name := range o.Lists {
		at := at + "/observe/" + strconv.Itoa(i)
		switch {
		case !slices.Contains(observable, name):
			hint := near(name, observable)
			if hint == "" {
				hint = `a rule or flow has its own "observe": true`
			}
			b.problem(at, fmt.Sprintf("unknown name %q, want one of %s", name, oneOf(observable)), hint)
		case slices.Contains(o.Lists[:i], name):
			b.problem(at, fmt.Sprintf("%s is named twice", name), "")
		}
	}
}

// onTrial reports whether something of a layer is only observed.
func (l *layer) onTrial() bool {
	listed := func(e listEntry) bool { return e.observed }
	return l.spec.observesTemplate() || l.spec.Default != nil && l.spec.observes("default") || l.spec.Allowlist != nil && l.spec.observes("allowlist") ||
		slices.ContainsFunc(l.deny, listed) || slices.ContainsFunc(l.ask, listed) ||
		slices.ContainsFunc(l.rules, func(r *rule) bool { return r.observed }) ||
		slices.ContainsFunc(l.flows, func(f *flow) bool { return f.observed })
}

// compose puts a layer on the profile that it extends, nil if it extends none: with what
// is only observed, or without.
func (l *layer) compose(base, up *Profile, observed bool) *Profile {
	p := &Profile{}
	*p = *base
	p.name = l.name
	if up != nil {
		p.fallback, p.limits = up.fallback, up.limits
		if observed || !l.spec.observesTemplate() {
			p.deny, p.ask, p.allow = slices.Clone(up.deny), slices.Clone(up.ask), slices.Clone(up.allow)
			p.hasAllowlist, p.defaultAction = up.hasAllowlist, up.defaultAction
			p.rules, p.flows = slices.Clone(up.rules), slices.Clone(up.flows)
		} else {
			p.rules = enforced(up.rules, nil)
		}
	}
	entries := func(own []listEntry) []listEntry {
		return slices.DeleteFunc(slices.Clone(own), func(e listEntry) bool { return e.observed && !observed })
	}
	counts := func(list string) bool { return observed || !l.spec.observes(list) }
	p.deny, p.ask, p.allow = append(p.deny, entries(l.deny)...), append(p.ask, entries(l.ask)...), append(p.allow, entries(l.allow)...)
	p.hasAllowlist = p.hasAllowlist || l.spec.Allowlist != nil && counts("allowlist")
	if p.setsDefault = l.spec.Default != nil && counts("default"); p.setsDefault {
		p.defaultAction = defaultAction(max(0, slices.Index(defaultActionWords, *l.spec.Default)))
	}
	if observed {
		p.rules, p.flows = append(p.rules, l.rules...), append(p.flows, l.flows...)
	} else {
		p.rules = append(p.rules, enforced(l.rules, func(r *rule) bool { return !r.observed })...)
		p.flows = append(p.flows, slices.DeleteFunc(slices.Clone(l.flows), func(f *flow) bool { return f.observed })...)
	}
	if l.spec.ElicitationFallback != nil {
		p.fallback = Fallback(max(0, slices.Index(fallbackWords, *l.spec.ElicitationFallback)))
	}
	if l.spec.Limits != nil {
		p.limits = p.limits.tighter(*l.spec.Limits)
	}
	return p
}

// enforced returns the rules that are whole, and of the others what they hide: an argument
// that a rule hides is hidden while the rule is on trial, too.
func enforced(rules []*rule, whole func(*rule) bool) (all []*rule) {
	for _, r := range rules {
		switch {
		case whole != nil && whole(r):
			all = append(all, r)
		case len(r.hidden) > 0 || r.display != (Display{}):
			all = append(all, &rule{label: r.label, profile: r.profile, at: r.at, spec: r.spec.hides(), tools: r.tools, when: r.when, meant: r.meant, hidden: r.hidden, display: r.display})
		}
	}
	return all
}

// full returns the profile with what is only observed.
func (p *Profile) full() *Profile {
	if p != nil && p.shadow != nil {
		return p.shadow
	}
	return p
}

// An EffectiveSpec is a profile after `extends`.
type EffectiveSpec struct {
	ProfileSpec // what is enforced
	// Observed are the lists, rules and flows that are only observed, and the default if
	// that would be another one; nil for none.
	Observed *ProfileSpec `json:"observed,omitempty"`
}

// observedSpec returns what of a profile is only observed; nil for nothing.
func observedSpec(p *Profile) *ProfileSpec {
	if p.shadow == nil {
		return nil
	}
	var e ProfileSpec
	added := func(all, enforced []listEntry) (some []string) {
		for _, text := range texts(all) {
			if !slices.Contains(texts(enforced), text) {
				some = append(some, text)
			}
		}
		return some
	}
	e.Denylist, e.Asklist, e.Allowlist = added(p.shadow.deny, p.deny), added(p.shadow.ask, p.ask), added(p.shadow.allow, p.allow)
	for _, r := range p.shadow.rules {
		if !slices.Contains(p.rules, r) {
			e.Rules = append(e.Rules, *r.spec)
		}
	}
	for _, f := range p.shadow.flows {
		if !slices.Contains(p.flows, f) {
			e.Flows = append(e.Flows, *f.spec)
		}
	}
	if would := p.shadow.unlisted(); would != p.unlisted() {
		e.Default = &defaultActionWords[would]
	}
	return &e
}

// observe adds to a decision what would come of the call if what is only observed were
// enforced.
func (p *Profile) observe(call *Call, d *Decision, trials *[]Trial) {
	if p == nil || p.shadow == nil {
		return
	}
	var tried []Trial
	to := &tried
	if trials == nil {
		to = nil
	}
	would := p.shadow.decide(call, steps, to)
	for _, t := range tried {
		if !slices.ContainsFunc(*trials, func(o Trial) bool { return o.same(t) }) {
			t.Observed = true
			*trials = append(*trials, t)
		}
	}
	if would.Disposition != Deny {
		p.observeChecks(call, &would)
	}
	d.compare(would, p.defaultAction == p.shadow.defaultAction)
}

// same reports whether two trials are of the same entry, rule or flow, with the same outcome.
func (t Trial) same(o Trial) bool {
	return t.Kind == o.Kind && t.Profile == o.Profile && t.Rule == o.Rule && t.Action == o.Action && t.Matched == o.Matched && t.Outcome == o.Outcome &&
		slices.Equal(t.Patterns, o.Patterns)
}

// observeChecks makes it a denial if a check of an observed rule does not pass.
func (p *Profile) observeChecks(call *Call, would *Decision) {
	observed := slices.DeleteFunc(slices.Clone(p.shadow.rules), func(r *rule) bool { return slices.Contains(p.rules, r) })
	runChecks(observed, call, func(r *rule, c CheckResult) {
		if c.Passed {
			return
		}
		why := Reason{Kind: KindPolicyError, Disposition: Deny, Profile: p.name, Detail: c.Detail}
		if r != nil {
			why = Reason{Kind: KindRule, Disposition: Deny, Profile: r.profile, Rule: r.label, Text: "its check does not pass: " + c.Expr}
		}
		would.Disposition = Deny
		would.Reasons = append(would.Reasons, why)
	})
	sortReasons(would.Reasons)
}

// compare notes what would be decided instead of d, and why. SameDefault says that both
// come from profiles with one default.
func (d *Decision) compare(would Decision, sameDefault bool) {
	if would.rank() == d.rank() {
		return
	}
	d.Would = Action(would.rank() + 1)
	var risks []Reason // of rules that decide nothing themselves
	for _, r := range would.Reasons {
		switch {
		case slices.Contains(d.Reasons, r):
		case r.Kind == KindRule && r.Disposition == 0 && r.Risk == would.Risk && r.Risk != d.Risk:
			risks = append(risks, r)
		case d.differs(r):
			d.Observed = append(d.Observed, r)
		}
	}
	if len(risks) > 0 && sameDefault && slices.ContainsFunc(d.Observed, func(r Reason) bool { return r.Kind == KindDefault }) {
		d.Observed = append(slices.DeleteFunc(d.Observed, func(r Reason) bool { return r.Kind == KindDefault }), risks...)
	}
	if len(d.Observed) == 0 {
		d.Observed = []Reason{would.Because()}
	}
	d.sortObserved()
}

func (d *Decision) sortObserved() {
	sortReasons(d.Observed)
	slices.SortStableFunc(d.Observed, func(a, b Reason) int { return int(b.would() - a.would()) })
}

// differs reports whether a reason asks for more than d, or for less, as d.Would does.
func (d *Decision) differs(r Reason) bool {
	if r.Disposition == 0 || r.Kind == KindRisk {
		return false
	}
	if d.GateDisabled && r.Disposition == Ask {
		return false // it would be allowed
	}
	says := r.would() - Action(d.rank()+1)
	return says != 0 && (says > 0) == d.stricterObserved()
}

// stricterObserved reports whether d would be stricter if what is only observed were enforced.
func (d *Decision) stricterObserved() bool { return d.rankObserved() > d.rank() }

// would returns what a reason asks for, as the action of a rule.
func (r Reason) would() Action {
	switch {
	case r.Action != 0:
		return r.Action
	case r.Disposition == Allow:
		return ActionAllow
	case r.Disposition == Ask:
		return ActionAsk
	}
	return ActionDeny
}

// rankObserved is the rank of what would come of the call if what is only observed were
// enforced.
func (d *Decision) rankObserved() int {
	if d.Would != 0 {
		return int(d.Would) - 1
	}
	return d.rank()
}

// observedBoth sets what of a and b is only observed, of which d is the stricter one.
func (d *Decision) observedBoth(a, b *Decision) {
	d.Would, d.Observed = 0, nil
	would := max(a.rankObserved(), b.rankObserved())
	if would == d.rank() {
		return
	}
	d.Would = Action(would + 1)
	enabled := *d
	enabled.GateDisabled = false // a and b have left out what comes of nothing where they are disabled
	for _, r := range slices.Concat(a.Observed, b.Observed) {
		risks := r.Disposition == 0 && d.stricterObserved()
		if (risks || enabled.differs(r)) && !slices.Contains(d.Observed, r) {
			d.Observed = append(d.Observed, r)
		}
	}
	d.sortObserved()
}

// WouldSay returns a line for each reason of what is only observed, such as
// "would ask: rule big (ask)" or "would ask: flows/0: private: ...". [CutWould] takes one
// apart.
func (d Decision) WouldSay() (lines []string) {
	for _, r := range d.Observed {
		says := r.would()
		if r.Disposition == 0 || !d.stricterObserved() {
			says = d.Would
		}
		line := wouldPrefix + says.String() + ": "
		if r.Kind == KindFlow {
			line += r.Rule + ": "
		}
		lines = append(lines, line+r.String())
	}
	return lines
}

const wouldPrefix = "would "

// CutWould takes a line of [Decision.WouldSay] apart: the action, as a word, and the
// reason. It reports false of any other line.
func CutWould(line string) (action, reason string, ok bool) {
	rest, ok := strings.CutPrefix(line, wouldPrefix)
	if !ok {
		return "", "", false
	}
	action, reason, ok = strings.Cut(rest, ": ")
	return action, reason, ok && slices.Contains(actionWords[1:], action)
}
