package profiles

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Looser says how one policy is, or may be, looser than the one that it would
// replace. The result is empty only if for every call and every profile the new
// decision is at least as strict as the old one: if [Stricter] of the two is the
// new one. Where that cannot be proved Looser reports the change, so it may report
// a change that loosens nothing.
//
// It takes the change apart: first what is added, then what is removed, then the
// settings. If no step by itself can make a decision looser, all of them together
// cannot. It compares profiles after `extends`, so a change of a profile shows in
// those that extend it.
func Looser(before, after *Set) []string {
	var all []string
	if before.enabled && !after.enabled {
		all = append(all, "evaluation.enabled is false: nobody is asked any more")
	}
	if after.pausedFor > before.pausedFor {
		all = append(all, fmt.Sprintf("pausedFor: a paused question stays open for %v instead of %v", after.pausedFor, before.pausedFor))
	}
	if u, v := before.unrestricted.unknown, after.unrestricted.unknown; v < u {
		all = append(all, fmt.Sprintf("risk: a tool of which nothing is known is %s instead of %s", v, u))
	}
	for _, file := range before.unrestricted.own {
		if !slices.Contains(after.unrestricted.own, file) {
			all = append(all, "a file of the bridge itself is not protected any more")
			break
		}
	}
	say := func(who string, what []string) {
		for _, w := range what {
			all = append(all, who+": "+w)
		}
	}
	for _, name := range after.Names() {
		p := after.profiles[name]
		if old, ok := before.profiles[name]; ok {
			say("profile "+name, (&loosening{old, p}).find())
		} else if !atLeastOne(before, p) {
			say("profile "+name, []string{"it is new, and nothing that there was is as loose"})
		}
	}
	was, is := before.defaultProfile, after.defaultProfile
	if was.name != is.name || is.name == "" {
		who := "eval"
		if was.name != is.name {
			who = fmt.Sprintf("eval (profile %s instead of %s)", called(is), called(was))
		}
		say(who, (&loosening{was, is}).find())
	}
	return all
}

func called(p *Profile) string {
	if p.name == "" {
		return "none"
	}
	return p.name
}

// atLeastOne reports whether a client could always have used some profile that
// is at most as strict as p.
func atLeastOne(before *Set, p *Profile) bool {
	for _, old := range append(slices.Collect(maps.Values(before.profiles)), before.defaultProfile) {
		if len((&loosening{old, p}).find()) == 0 {
			return true
		}
	}
	return false
}

// A loosening compares one profile before and after.
type loosening struct{ before, after *Profile }

func (l *loosening) find() []string {
	return slices.Concat(l.lists(), l.addedRules(), l.lostRules(), l.flowsLooser(), l.settings(), l.limits())
}

func (l *loosening) lists() (all []string) {
	say := func(list string, e listEntry, what string) {
		all = append(all, fmt.Sprintf("%s: %q %s", list, e.text, what))
	}
	for _, e := range l.before.deny {
		if !covered(e.pattern, l.after.patternsWith(Deny)) {
			say("denylist", e, "is gone")
		}
	}
	for _, e := range l.before.ask {
		if !covered(e.pattern, l.after.patternsWith(Ask)) {
			say("asklist", e, "is gone")
		}
	}
	for _, e := range l.after.ask {
		if !covered(e.pattern, patterns(l.before.ask)) && !l.answered(e.pattern) {
			say("asklist", e, "is new, and was denied because nothing named it")
		}
	}
	for _, e := range l.after.allow {
		if !l.passed(e.pattern) {
			say("allowlist", e, "is new")
		}
	}
	if was, is := l.before.unlisted(), l.after.unlisted(); is < was {
		what := "default"
		if l.before.hasAllowlist && !l.after.hasAllowlist {
			what = "the allowlist is gone, and what nothing names"
		}
		all = append(all, fmt.Sprintf("%s: %s instead of %s", what, defaultActionWords[is], defaultActionWords[was]))
	}
	return all
}

// unlisted returns what happens to a call that no list and no rule names.
func (p *Profile) unlisted() defaultAction {
	if p.hasAllowlist {
		return defaultDeny
	}
	return p.defaultAction
}

// patternsWith returns the patterns whose tools get at least that disposition,
// whatever their arguments.
func (p *Profile) patternsWith(d Disposition) []pattern {
	all := patterns(p.deny)
	if d <= Ask {
		all = append(all, patterns(p.ask)...)
	}
	if d <= Allow {
		all = append(all, patterns(p.allow)...)
	}
	for _, r := range p.rules {
		if says := r.action.disposition(); r.when == nil && says >= d && says != 0 {
			all = append(all, r.tools...)
		}
	}
	return all
}

func patterns(entries []listEntry) []pattern {
	var all []pattern
	for _, e := range entries {
		all = append(all, e.pattern)
	}
	return all
}

// answered reports whether one more ask cannot loosen calls of these tools: they
// were not denied merely because nothing named them, or they are denied now in
// any case.
func (l *loosening) answered(p pattern) bool {
	return l.before.unlisted() != defaultDeny || covered(p, l.before.patternsWith(Allow)) || covered(p, l.after.patternsWith(Deny))
}

// passed reports whether one more allow cannot loosen calls of these tools: only a
// list or rule that names them kept them from passing, or they are denied now in
// any case.
func (l *loosening) passed(p pattern) bool {
	return l.before.unlisted() == defaultAllow || covered(p, patterns(l.before.allow)) || covered(p, l.after.patternsWith(Deny))
}

// covered reports whether every tool that p matches is matched by one of the
// patterns. It may wrongly say no, but never wrongly yes.
func covered(p pattern, by []pattern) bool {
	for _, q := range by {
		if q.text == p.text {
			return true
		}
	}
	for i := range p.alternatives {
		a := &p.alternatives[i]
		if !slices.ContainsFunc(by, func(q pattern) bool {
			if a.glob == nil && !a.prefix {
				return q.match(a.literal)
			}
			return slices.ContainsFunc(q.alternatives, func(b alternative) bool { return b.prefix && strings.HasPrefix(a.literal, b.literal) })
		}) {
			return false
		}
	}
	return true
}

func allCovered(some, by []pattern) bool {
	return !slices.ContainsFunc(some, func(p pattern) bool { return !covered(p, by) })
}

// twin reports whether one of the rules is as wanted and applies whenever r does,
// because its condition is the same.
func twin(r *rule, among []*rule, wanted func(*rule) bool) bool {
	return slices.ContainsFunc(among, func(o *rule) bool {
		return conditionText(o) == conditionText(r) && allCovered(r.tools, o.tools) && wanted(o)
	})
}

// conditionText returns the text of everything that a rule asks of a call besides
// the tool's name; empty if it asks nothing.
func conditionText(r *rule) string {
	if r.when == nil {
		return ""
	}
	s := r.spec
	text, err := json.Marshal(RuleSpec{When: s.When, Effects: s.Effects, Where: s.Where, Paths: s.Paths, Hosts: s.Hosts, Recipients: s.Recipients, Commands: s.Commands, Net: s.Net, Known: s.Known})
	if err != nil {
		panic("profiles: writing a condition: " + err.Error()) // texts can always be encoded
	}
	return string(text)
}

func (l *loosening) addedRules() (all []string) {
	for _, r := range l.after.rules {
		if why := l.added(r); why != "" {
			all = append(all, fmt.Sprintf("rule %s is new or changed, and %s", r.label, why))
		}
	}
	return all
}

// added says how an added rule could loosen the policy; empty if it cannot.
func (l *loosening) added(r *rule) string {
	if r.action == ActionDeny || allCovered(r.tools, l.after.patternsWith(Deny)) {
		return ""
	}
	had := func(wanted func(o *rule) bool) bool { return twin(r, l.before.rules, wanted) }
	every := func(ok func(pattern) bool) bool {
		return !slices.ContainsFunc(r.tools, func(p pattern) bool { return !ok(p) })
	}
	switch r.action.disposition() {
	case Allow:
		if !every(l.passed) && !had(func(o *rule) bool { return o.action != 0 }) {
			return "lets calls pass"
		}
	case Ask:
		if !every(l.answered) && !had(func(o *rule) bool { return o.action.disposition() >= Ask }) {
			return "makes calls askable that were denied because nothing named them"
		}
	}
	if r.risk != 0 && !had(func(o *rule) bool { return o.risk >= r.risk }) {
		// A rule's risk replaces the guess from the tool, which is high at most.
		if r.risk < max(High, l.before.unknown) && !had(func(o *rule) bool { return o.risk != 0 }) {
			return fmt.Sprintf("says %s risk of tools that may have counted as riskier", r.risk)
		}
		if !l.steady() {
			return fmt.Sprintf("says %s risk, at which people are asked in a looser way than at a lower one", r.risk)
		}
	}
	switch {
	case isTrue(r.repeatable) && !had(func(o *rule) bool { return isTrue(o.repeatable) }):
		return "says that calls may be made twice"
	case isTrue(r.remember) && !had(func(o *rule) bool { return isTrue(o.remember) }):
		return "lets a yes be remembered"
	case isFalse(r.requireReason) && !had(func(o *rule) bool { return isFalse(o.requireReason) }):
		return "needs no reason"
	case r.timeout != 0 && !l.everyAskSetting(func(d askSettings) bool { return r.timeout <= d.timeout }) && !had(func(o *rule) bool { return o.timeout != 0 }):
		return fmt.Sprintf("waits %v for an answer", r.timeout)
	case r.quorum != nil && !l.everyAskSetting(func(d askSettings) bool { return meets(r.quorum, d.quorum) }) && !had(func(o *rule) bool { return o.quorum != nil }):
		return "sets another quorum"
	}
	return ""
}

func (l *loosening) everyAskSetting(ok func(askSettings) bool) bool {
	return !slices.ContainsFunc(l.before.askSettings[Low:], func(d askSettings) bool { return !ok(d) })
}

// steady reports whether people were asked at each risk at least as strictly as at
// lower ones, so that raising the risk loosens nothing.
func (l *loosening) steady() bool {
	for r := Low; r < Critical; r++ {
		if looserAsking(l.before.askSettings[r], l.before.askSettings[r+1]) != "" {
			return false
		}
	}
	return true
}

// meets reports whether whoever satisfies one quorum has satisfied the other.
func meets(q, other *Quorum) bool { return other == nil || q != nil && q.Meets(*other) }

// Meets reports whether whoever satisfies q has satisfied another quorum too.
func (q Quorum) Meets(other Quorum) bool {
	return q.Need >= other.Need && slices.Equal(q.Of, other.Of) && (q.InOrder || !other.InOrder)
}

func (l *loosening) lostRules() (all []string) {
	for _, r := range l.before.rules {
		if allCovered(r.tools, l.after.patternsWith(Deny)) {
			continue // denied in any case
		}
		if why := l.lost(r); why != "" {
			all = append(all, fmt.Sprintf("rule %s is gone or changed, and %s", r.label, why))
		}
	}
	return all
}

// lost says what the removal of a rule could loosen; empty if nothing.
func (l *loosening) lost(r *rule) string {
	has := func(wanted func(n *rule) bool) bool { return twin(r, l.after.rules, wanted) }
	if has(func(n *rule) bool { return n.action == ActionDeny }) {
		return ""
	}
	switch r.action {
	case ActionDeny:
		return "denied calls"
	case ActionManual:
		if !has(func(n *rule) bool { return n.action == ActionManual }) {
			return "wanted calls confirmed by hand"
		}
	case ActionAsk:
		if !has(func(n *rule) bool { return n.action >= ActionAsk }) && !allCovered(r.tools, l.after.patternsWith(Ask)) {
			return "asked"
		}
	case ActionNotify:
		if !has(func(n *rule) bool { return n.action == ActionNotify }) {
			return "announced calls"
		}
	}
	if r.risk != 0 && !has(func(n *rule) bool { return n.risk >= r.risk }) {
		if r.risk > Low {
			return fmt.Sprintf("said %s risk", r.risk)
		}
		if !l.steady() {
			return "said low risk, at which people are asked in a stricter way than at a higher one"
		}
	}
	switch {
	case isFalse(r.repeatable) && !has(func(n *rule) bool { return isFalse(n.repeatable) }):
		return "said that no call may be made twice"
	case isFalse(r.remember) && !has(func(n *rule) bool { return isFalse(n.remember) }):
		return "let no yes be remembered"
	case isTrue(r.requireReason) && !has(func(n *rule) bool { return isTrue(n.requireReason) }):
		return "wanted a reason"
	case r.timeout != 0 && !has(func(n *rule) bool { return n.timeout != 0 && n.timeout <= r.timeout }):
		return fmt.Sprintf("waited only %v for an answer", r.timeout)
	case r.quorum != nil && !has(func(n *rule) bool { return meets(n.quorum, r.quorum) }):
		return "wanted several people"
	}
	for _, check := range r.spec.Check {
		if !has(func(n *rule) bool { return slices.Contains(n.spec.Check, check) }) {
			return "checked " + check
		}
	}
	for _, key := range sortedKeys(r.hidden) {
		if !has(func(n *rule) bool { _, ok := n.hidden[key]; return ok }) {
			return "hid " + key
		}
	}
	if r.display != (Display{}) && !has(func(n *rule) bool { return n.display == n.display.tighter(r.display) }) {
		return "showed less of the arguments"
	}
	return ""
}

func (l *loosening) settings() (all []string) {
	switch was, is := l.before.fallback, l.after.fallback; {
	case is > was:
		all = append(all, fmt.Sprintf("elicitationFallback: %s instead of %s", is, was))
	case was == FallbackAllow && is == FallbackQueue: // see limitFallback
		all = append(all, "elicitationFallback: critical, manual and quorum calls wait, and were refused")
	}
	for r := Low; r <= Critical; r++ {
		if why := looserAsking(l.before.askSettings[r], l.after.askSettings[r]); why != "" {
			all = append(all, fmt.Sprintf("risk %s: %s", r, why))
		}
	}
	if l.after.unknown > l.before.unknown && !l.steady() {
		all = append(all, fmt.Sprintf("a tool of which nothing is known is %s, at which people are asked in a looser way than at a lower risk", l.after.unknown))
	}
	return all
}

// looserAsking says how asking has become looser; empty if it has not.
func looserAsking(was, is askSettings) string {
	var all []string
	switch {
	case is.timeout > was.timeout:
		all = append(all, fmt.Sprintf("%v for an answer instead of %v", is.timeout, was.timeout))
	case was.explicit && !is.explicit:
		all = append(all, fmt.Sprintf("%v for an answer no longer hold where pausedFor counts", was.timeout))
	}
	if is.remember && !was.remember {
		all = append(all, "a yes may be remembered")
	}
	if was.requireReason && !is.requireReason {
		all = append(all, "no reason is needed")
	}
	if !meets(is.quorum, was.quorum) {
		all = append(all, "the quorum is gone or another")
	}
	return strings.Join(all, ", ")
}

func (l *loosening) limits() (all []string) {
	a, b := l.before.limits, l.after.limits
	for _, limit := range []struct {
		name   string
		raised bool
	}{
		{"cpu", raised(a.CPU, b.CPU)}, {"call", raised(a.Call, b.Call)}, {"heap", raised(a.Heap, b.Heap)},
		{"calls", raised(a.Calls, b.Calls)}, {"parallel", raised(a.Parallel, b.Parallel)},
		{"source", raised(a.Source, b.Source)}, {"input", raised(a.Input, b.Input)}, {"logs", raised(a.Logs, b.Logs)},
		{"result", raised(a.Result, b.Result)}, {"reply", raised(a.Reply, b.Reply)},
	} {
		if limit.raised {
			all = append(all, "limits: "+limit.name+" is higher or gone")
		}
	}
	return all
}

// raised reports whether a limit was raised or removed.
func raised[T ~int | ~int64](was, is *T) bool { return was != nil && (is == nil || *is > *was) }

// flowsLooser says how the rules about flows of one profile have become looser.
func (l *loosening) flowsLooser() (all []string) {
	for _, f := range l.before.flows {
		if !slices.ContainsFunc(l.after.flows, f.coveredBy) {
			all = append(all, fmt.Sprintf("flow from %s to %s by %s (%s) is gone or weaker", f.from, f.to, f.by(), f.says))
		}
	}
	return all
}

// coveredBy reports whether another flow is as strict wherever f applies.
func (f *flow) coveredBy(n *flow) bool {
	return n.from == f.from && n.to == f.to && n.content == f.content && n.says >= f.says
}
