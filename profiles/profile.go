package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Profile decides calls. It is immutable and safe for concurrent use.
type Profile struct {
	name     string
	enabled  bool // evaluation.enabled
	revision string
	grounds  string // see Decision.Grounds
	own      ownFiles
	unknown  Risk

	// The three lists, each including what `extends` adds.
	deny, ask, allow []listEntry
	hasAllowlist     bool
	rules            []*rule
	flows            []*flow
	defaultAction    defaultAction
	setsDefault      bool // it sets its default itself
	fallback         Fallback
	askSettings      [Critical + 1]askSettings
	limits           Limits
	effective        EffectiveSpec
	shadow           *Profile // the profile with what is only observed; nil if nothing is
}

// A listEntry is one pattern of a list.
type listEntry struct {
	pattern
	profile  string // where it is written
	at       string // JSON pointer
	observed bool
}

// A rule is one compiled rule.
type rule struct {
	label   string // its name, or rules/N
	profile string // where it is written
	at      string // JSON pointer
	spec    *RuleSpec
	tools   []pattern
	when    condition // nil: always
	meant   bool      // it is about what calls mean
	action  Action
	risk    Risk
	reason  string

	observed bool

	repeatable    *bool
	timeout       time.Duration // zero: not set
	remember      *bool
	requireReason *bool
	quorum        *Quorum
	checks        []*expression
	hidden        Hidden
	display       Display
}

// A defaultAction is what a profile does with a call that no list and no rule
// names, from the loosest to the strictest.
type defaultAction int

const (
	defaultAllow defaultAction = iota
	defaultByRisk
	defaultAsk
	defaultDeny
)

var defaultActionWords = []string{"allow", "risk", "ask", "deny"}

// An askSettings says how people are asked at one risk.
type askSettings struct {
	timeout                 time.Duration
	explicit                bool // the timeout is not the section's
	remember, requireReason bool
	quorum                  *Quorum
}

// maxPath bounds the name of a tool: globs may backtrack over it.
const maxPath = 1024

// Name is the profile's name; empty for the unrestricted one.
func (p *Profile) Name() string { return p.name }

// Limits returns the limits of a run under this profile, the tightest along
// `extends`, nil where none is set.
func (p *Profile) Limits() Limits { return p.limits }

// Effective returns the profile after `extends`: with all inherited lists and
// rules, and the settings as they apply.
func (p *Profile) Effective() EffectiveSpec { return p.effective }

// Decide decides what becomes of this call. It is a pure function of the policy
// and the call. Any error on the way denies, and so does a nil profile.
func (p *Profile) Decide(call Call) Decision {
	d := p.decide(&call, steps, nil)
	p.observe(&call, &d, nil)
	return d
}

// Decisions are made in these steps; each adds what it finds to the tally.
//
//	own files ─┐
//	lists ─────┤ every entry and rule is tried and the strictest match wins,
//	rules ─────┘ so their order has no meaning
//	risk          of rules, annotations and words; needed for the default
//	repeatable    of rules and annotations
//	default       nothing matched: not on the allowlist, or the default action
//	flows         what was read may not go everywhere
//	changed       an allowed call of a changed tool is asked
//	gate          evaluation.enabled is false: an ask is allowed
//	asking        how to ask, if it is still to be asked
var steps = []func(*tally) error{
	(*tally).tryOwnFiles,
	(*tally).tryLists,
	(*tally).tryRules,
	(*tally).weighRisk,
	(*tally).weighRepeating,
	(*tally).applyDefault,
	(*tally).tryFlows,
	(*tally).checkChanged,
	(*tally).checkGate,
	(*tally).applyAskSettings,
}

// decide runs the steps. They are a parameter so that a test can make each one
// fail.
func (p *Profile) decide(call *Call, steps []func(*tally) error, trials *[]Trial) (d Decision) {
	if p == nil {
		return policyError(Decision{}, "there is no such profile")
	}
	t := &tally{p: p, call: call, facts: facts{call: call, path: call.Path()}, trials: trials}
	t.d.Profile, t.d.Revision, t.d.Grounds = p.name, p.revision, p.grounds
	defer func() {
		if recover() != nil {
			// The panic value may quote arguments.
			d = policyError(t.d, "panic while deciding")
		}
	}()
	if len(t.facts.path) > maxPath {
		return policyError(t.d, fmt.Sprintf("the tool's name is longer than %d bytes", maxPath))
	}
	for _, step := range steps {
		if err := step(t); err != nil {
			return policyError(t.d, err.Error())
		}
	}
	sortReasons(t.d.Reasons)
	return t.d
}

// policyError returns the decision for when deciding went wrong.
func policyError(d Decision, detail string) Decision {
	return Decision{
		Disposition: Deny,
		Risk:        Critical,
		Reasons:     []Reason{{Kind: KindPolicyError, Disposition: Deny, Profile: d.Profile, Detail: detail}},
		Profile:     d.Profile,
		Revision:    d.Revision,
		Grounds:     d.Grounds,
	}
}

// A tally is one decision in the making.
type tally struct {
	p       *Profile
	call    *Call
	facts   facts
	d       Decision
	applied []applied
	carried bool     // it asks because of what the call carries
	context bool     // it asks because of what was read before
	trials  *[]Trial // nil unless every rule tried is to be reported
}

// applied is a rule that matched, or might have.
type applied struct {
	*rule
	undecided bool
}

// add records a reason; the strictest wins.
func (t *tally) add(r Reason) {
	t.d.Disposition = max(t.d.Disposition, r.Disposition)
	t.d.Reasons = append(t.d.Reasons, r)
}

func (t *tally) tried(trial Trial) {
	if t.trials != nil {
		*t.trials = append(*t.trials, trial)
	}
}

func (t *tally) tryOwnFiles() error {
	at, named := t.p.own.named(t.call.Args, t.p.hides)
	if named {
		t.add(Reason{Kind: KindOwnFile, Disposition: Deny, Detail: "the argument " + at + " names a file of the bridge itself"})
	}
	if t.trials != nil && len(t.p.own) > 0 {
		outcome := "no argument names one"
		if named {
			outcome = "the argument " + at + " names one: deny"
		}
		t.tried(Trial{Kind: KindOwnFile, Matched: named, Outcome: outcome})
	}
	return nil
}

func (t *tally) tryLists() error {
	for _, list := range []struct {
		kind    Kind
		says    Disposition
		entries []listEntry
	}{
		{KindDenylist, Deny, t.p.deny},
		{KindAsklist, Ask, t.p.ask},
		{KindAllowlist, Allow, t.p.allow},
	} {
		for i := range list.entries {
			e := &list.entries[i]
			matched := e.match(t.facts.path)
			if matched {
				t.add(Reason{Kind: list.kind, Disposition: list.says, Profile: e.profile, Pattern: e.text})
			}
			if t.trials != nil {
				outcome := "another tool"
				if matched {
					outcome = "matches: " + list.says.String()
				}
				t.tried(Trial{Kind: list.kind, Profile: e.profile, Patterns: []string{e.text}, Matched: matched, Outcome: outcome})
			}
		}
	}
	return nil
}

func (t *tally) tryRules() error {
	for _, r := range t.p.rules {
		pattern, ok := anyMatch(r.tools, t.facts.path)
		if !ok {
			t.triedRule(r, false, "another tool")
			continue
		}
		truth, why := yes, ""
		if r.when != nil {
			truth, why = r.when.eval(&t.facts)
			truth = t.settle(r, truth, why)
		}
		if truth == no {
			t.triedRule(r, false, "the condition is false")
			continue
		}
		says := r.action.disposition()
		if out, _ := t.call.Meaning.carriesOut(); truth == yes && says == Allow && r.meant && out != "" {
			truth, why = undecided, out // what looks harmless may carry it away
		}
		t.applied = append(t.applied, applied{r, truth == undecided})
		if truth == undecided && says == Allow {
			t.triedRule(r, false, "the condition cannot be decided, which counts as false for "+r.action.String()+": "+why)
			says = 0
			if r.risk == 0 {
				continue
			}
		} else {
			t.d.Manual = t.d.Manual || r.action == ActionManual
			t.d.Notify = t.d.Notify || r.action == ActionNotify
			if outcome := "matches"; t.trials != nil {
				if truth == undecided {
					outcome = "the condition cannot be decided, which counts as true here: " + why
				}
				t.triedRule(r, true, outcome)
			}
		}
		if says == 0 && r.risk == 0 {
			continue // it says only how to ask
		}
		t.add(Reason{
			Kind: KindRule, Disposition: says, Profile: r.profile, Pattern: pattern.text, Rule: r.label, Action: r.action,
			Risk: r.risk, Undecided: truth == undecided, Text: r.reason, Detail: why,
		})
	}
	return nil
}

func (t *tally) triedRule(r *rule, matched bool, outcome string) {
	if t.trials == nil {
		return
	}
	var texts []string
	for _, p := range r.tools {
		texts = append(texts, p.text)
	}
	t.tried(Trial{Kind: KindRule, Profile: r.profile, Rule: r.label, Patterns: texts, Action: r.action, Matched: matched, Outcome: outcome})
}

// disposition returns the disposition that a rule with this action asks for; zero
// for a rule that decides nothing.
func (a Action) disposition() Disposition {
	switch a {
	case ActionAllow, ActionNotify:
		return Allow
	case ActionAsk, ActionManual:
		return Ask
	case ActionDeny:
		return Deny
	}
	return 0
}

// rules reports whether r's risk takes precedence over another rule's: the
// stricter one does, whatever the order of the rules.
func (r *rule) rules(other *rule) bool {
	return cmp.Or(cmp.Compare(r.risk, other.risk), strings.Compare(other.profile, r.profile), strings.Compare(other.label, r.label)) > 0
}

// weighRisk sets the risk. The strictest risk of the matching rules replaces the
// guess from the tool. Without one the guess counts, but is never below the risk
// of an unknown tool, so that nothing an upstream says of itself (an openWorldHint
// on an unknown tool) can lower it. Neither goes below the danger that the
// annotations state, and a rule that only might have matched can raise the result
// but not lower it.
func (t *tally) weighRisk() error {
	danger, guessed, quiet := toolRisk(t.call, t.p.unknown)
	counts := danger
	var ruling *rule
	for _, r := range t.applied {
		if !r.undecided && r.risk != 0 && (ruling == nil || r.rules(ruling)) {
			ruling = r.rule
		}
	}
	switch m := t.call.Meaning; {
	case ruling != nil:
	case t.call.known():
		counts = append(counts, m.risk())
	default:
		counts = append(counts, guessed...)
		if m != nil {
			counts = append(counts, m.risk())
		}
		if quiet.Risk > strictest(counts).Risk {
			counts = append(counts, quiet)
		}
	}
	t.d.Reasons = append(t.d.Reasons, counts...)
	t.d.Risk = strictest(counts).Risk
	t.d.Risk = max(t.d.Risk, t.ruled())
	t.d.Hinted = t.call.known() && len(danger) > 0 && max(t.call.Meaning.risk().Risk, t.ruled()) < High
	if guess := strictest(guessed); ruling != nil && ruling.risk == t.d.Risk && guess.Risk > t.d.Risk {
		t.d.Reasons = append(t.d.Reasons, Reason{Kind: KindRisk, Risk: t.d.Risk, Profile: ruling.profile, Rule: ruling.label,
			Detail: fmt.Sprintf("guessed %s: %s", guess.Risk, guess.Detail)})
	}
	return nil
}

// ruled returns the highest risk that the rules which apply, or might, say.
func (t *tally) ruled() (highest Risk) {
	for _, r := range t.applied {
		highest = max(highest, r.risk)
	}
	return highest
}

// strictest returns the first of the reasons with the highest risk; the zero
// Reason if there is none.
func strictest(reasons []Reason) (most Reason) {
	for _, r := range reasons {
		if r.Risk > most.Risk {
			most = r
		}
	}
	return most
}

// weighRepeating decides whether the call is repeatable. A rule overrides the
// tool's annotations; a rule that only might have matched can only forbid. If the
// tool's definition is not the accepted one nothing is believed: what was said is
// about another tool.
func (t *tally) weighRepeating() error {
	t.d.ReadOnly = t.call.reads()
	var said opinions
	for _, r := range t.applied {
		said.add(r.repeatable, r.undecided)
	}
	t.d.Repeatable = t.call.Changed == "" && said.result(false, t.call.repeatable())
	return nil
}

// applyDefault decides a call that no list and no rule names.
func (t *tally) applyDefault() error {
	if t.d.Disposition != 0 {
		return nil
	}
	r := Reason{Kind: KindDefault, Profile: t.p.name, Detail: "default: " + defaultActionWords[t.p.defaultAction]}
	switch {
	case t.p.hasAllowlist:
		r.Kind, r.Disposition, r.Detail = KindNotListed, Deny, "not on the allowlist"
	case t.p.defaultAction == defaultDeny:
		r.Disposition = Deny
	case t.p.defaultAction == defaultAsk, t.p.defaultAction == defaultByRisk && t.d.Risk >= Medium:
		r.Disposition = Ask
	case t.p.defaultAction == defaultByRisk, t.p.defaultAction == defaultAllow:
		r.Disposition = Allow
	default:
		return errors.New("the profile's default is none of the known")
	}
	t.add(r)
	t.tried(Trial{Kind: r.Kind, Profile: r.Profile, Matched: true, Outcome: r.Detail + ": " + r.Disposition.String()})
	return nil
}

// checkChanged raises an allow to an ask, adds its reason to an ask, and does
// nothing else: a tool that may never be called does not become askable by
// changing.
func (t *tally) checkChanged() error {
	if t.call.Changed != "" && (t.d.Disposition == Allow || t.d.Disposition == Ask) {
		t.add(Reason{Kind: KindChanged, Disposition: Ask, Detail: t.call.Changed})
	}
	return nil
}

func (t *tally) checkGate() error {
	if t.p.enabled {
		return nil
	}
	t.d.GateDisabled = true
	if t.d.Disposition == Ask {
		t.d.Disposition = Allow
		t.d.Reasons = append(t.d.Reasons, Reason{Kind: KindGateDisabled, Disposition: Allow, Detail: "would be asked, but evaluation.enabled is false"})
	}
	return nil
}

// applyAskSettings sets how to ask. A rule overrides the settings of the risk;
// among rules the strictest counts, and one that only might have matched loosens
// nothing.
func (t *tally) applyAskSettings() error {
	d := &t.d
	for _, r := range t.applied {
		d.Hidden = r.hidden.addTo(d.Hidden)
		d.Display = d.Display.tighter(r.display)
	}
	if d.Disposition != Ask {
		d.Manual = false
		return nil
	}
	base := t.p.askSettings[d.Risk]
	var timeout time.Duration
	var remember, requireReason opinions
	keepQuorum := true
	for _, r := range t.applied {
		if r.timeout > 0 && (timeout == 0 || r.timeout < timeout) {
			timeout = r.timeout
		}
		remember.add(r.remember, r.undecided)
		requireReason.add(r.requireReason, r.undecided)
		if r.quorum != nil {
			d.Quorums = append(d.Quorums, *r.quorum)
			keepQuorum = keepQuorum && r.undecided
		}
	}
	if base.quorum != nil && keepQuorum {
		d.Quorums = append(d.Quorums, *base.quorum)
	}
	d.Quorums = tidyQuorums(d.Quorums)
	d.Timeout, d.TimeoutExplicit = base.timeout, base.explicit
	if timeout > 0 {
		d.Timeout, d.TimeoutExplicit = timeout, true
	}
	d.RequireReason = requireReason.result(true, base.requireReason)
	// A call that takes more than a keystroke to approve is not remembered, nor one whose next
	// like may carry something else.
	d.Remember = remember.result(false, base.remember) && !d.Manual && !d.RequireReason && len(d.Quorums) == 0 && !t.carried
	d.Context = t.askedInContext()
	d.Fallback = t.p.fallback
	d.limitFallback()
	if d.Timeout <= 0 {
		return errors.New("no time to answer is set")
	}
	return nil
}

// opinions collects what rules say about one yes-or-no setting.
type opinions struct{ yes, no, maybeYes, maybeNo bool }

func (o *opinions) add(said *bool, undecided bool) {
	if said == nil {
		return
	}
	o.maybeYes = o.maybeYes || *said
	o.maybeNo = o.maybeNo || !*said
	if !undecided {
		o.yes = o.yes || *said
		o.no = o.no || !*said
	}
}

// result returns the strict answer if any rule might give it, else the loose one
// if a rule does give it, else the setting that applies without rules.
func (o *opinions) result(strict, below bool) bool {
	maybeStrict, loose := o.maybeNo, o.yes
	if strict {
		maybeStrict, loose = o.maybeYes, o.no
	}
	switch {
	case maybeStrict:
		return strict
	case loose:
		return !strict
	}
	return below
}

func (d Display) tighter(o Display) Display {
	least := func(a, b int) int {
		if a == 0 || b != 0 && b < a {
			return b
		}
		return a
	}
	return Display{
		MaxString: least(d.MaxString, o.MaxString),
		MaxArray:  least(d.MaxArray, o.MaxArray),
		MaxObject: least(d.MaxObject, o.MaxObject),
		MaxDepth:  least(d.MaxDepth, o.MaxDepth),
	}
}

func tidyQuorums(quorums []Quorum) []Quorum {
	slices.SortFunc(quorums, func(a, b Quorum) int {
		return strings.Compare(fmt.Sprintf("%08d%q%t", 1<<20-a.Need, a.Of, a.InOrder), fmt.Sprintf("%08d%q%t", 1<<20-b.Need, b.Of, b.InOrder))
	})
	return slices.CompactFunc(quorums, func(a, b Quorum) bool {
		return a.Need == b.Need && a.InOrder == b.InOrder && slices.Equal(a.Of, b.Of)
	})
}

// Checks runs the `check` expressions of the rules that apply to this call. It is
// for the moment between approval and sending: a check that does not pass refuses
// the call. One that cannot be decided does not pass.
func (p *Profile) Checks(call Call) (results []CheckResult) {
	if p == nil {
		return []CheckResult{{Detail: "there is no such profile"}}
	}
	runChecks(p.rules, &call, func(_ *rule, result CheckResult) { results = append(results, result) })
	return results
}

// runChecks runs the checks of rules; of a panic there is a result without a rule.
func runChecks(rules []*rule, call *Call, each func(*rule, CheckResult)) {
	defer func() {
		if recover() != nil {
			each(nil, CheckResult{Detail: "panic while checking"})
		}
	}()
	f := &facts{call: call, path: call.Path()}
	for _, r := range rules {
		if len(r.checks) == 0 {
			continue
		}
		if _, ok := anyMatch(r.tools, f.path); !ok {
			continue
		}
		if r.when != nil {
			if truth, _ := r.when.eval(f); truth == no {
				continue
			}
		}
		for _, c := range r.checks {
			truth, why := c.eval(f)
			each(r, CheckResult{Rule: r.label, Expr: c.text, Passed: truth == yes, Detail: why})
		}
	}
}

// Hidden returns the argument keys that any rule hides on display, in the form of
// [Decision.Hidden]: for what is shown before it is known which rules apply.
func (p *Profile) Hidden() (all map[string]string) {
	if p == nil {
		return nil
	}
	for _, r := range p.rules {
		all = r.hidden.addTo(all)
	}
	return all
}

// hides reports whether any rule hides the value of an argument with this name.
func (p *Profile) hides(name string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.hides(FoldName(name)) })
}

// A CheckResult is the outcome of one `check` expression.
type CheckResult struct {
	Rule   string `json:"rule"`
	Expr   string `json:"expr"`
	Passed bool   `json:"passed"`
	// Detail says why it could not be decided.
	Detail string `json:"detail,omitempty"`
}

// Sees reports whether the tool may be shown to a script of this profile. It
// is false only when no call of the tool can ever pass or be asked, whatever
// its arguments.
func (p *Profile) Sees(server, tool string) bool {
	if p == nil {
		return false
	}
	name := qualified(server, tool)
	if len(name) > maxPath {
		return false
	}
	for i := range p.deny {
		if p.deny[i].match(name) {
			return false
		}
	}
	mayPass := false
	for _, r := range p.rules {
		if _, ok := anyMatch(r.tools, name); !ok {
			continue
		}
		switch r.action.disposition() {
		case Deny:
			if r.when == nil {
				return false
			}
		case Ask, Allow:
			mayPass = true
		}
	}
	if mayPass || !p.hasAllowlist && p.defaultAction != defaultDeny {
		return true
	}
	for _, list := range [][]listEntry{p.ask, p.allow} {
		for i := range list {
			if list[i].match(name) {
				return true
			}
		}
	}
	return false
}

// ReadOnly reports whether none of the tools that this profile sees can write:
// each is of low risk by what is known of the tool itself, whatever risk rules
// state.
func (p *Profile) ReadOnly(tools []ToolFacts) bool {
	for i := range tools {
		if !p.Sees(tools[i].Server, tools[i].Tool) {
			continue
		}
		if call := tools[i].call(); !call.reads() {
			return false
		}
	}
	return true
}

// An Explanation is a decision with everything that was tried to reach it.
type Explanation struct {
	Decision Decision `json:"decision"`
	Tried    []Trial  `json:"tried"`
}

// A Trial is one list entry, rule or default that was tried.
type Trial struct {
	Kind     Kind     `json:"kind"`
	Profile  string   `json:"profile,omitempty"` // where it is written
	Rule     string   `json:"rule,omitempty"`    // the rule's name or place
	Patterns []string `json:"patterns,omitempty"`
	Action   Action   `json:"action,omitempty"`
	// Matched reports that it took part in the decision.
	Matched bool   `json:"matched"`
	Outcome string `json:"outcome"`
	// Observed reports that it is only observed, and took no part.
	Observed bool `json:"observed,omitempty"`
}

// Explain decides like Decide and reports every list entry and rule that it tried,
// in the order in which they are written, and then what is only observed.
func (p *Profile) Explain(call Call) Explanation {
	var e Explanation
	e.Decision = p.decide(&call, steps, &e.Tried)
	p.observe(&call, &e.Decision, &e.Tried)
	return e
}
