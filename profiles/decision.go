package profiles

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Annotations are an upstream's hints about its tool; nil where it gives none.
// They can raise a call's risk but, without TrustAnnotations, never lower it.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// RunFacts are what is known of the run before this call.
type RunFacts struct {
	// Calls counts the calls made so far.
	Calls int
	// Bytes counts the argument and answer bytes so far.
	Bytes int64
	// Tools are the different tools used so far, as server__tool.
	Tools []string
}

// A Call is everything that policy may look at. It must not change while it is
// being decided.
type Call struct {
	// Server is the configured name of the server; empty for the bridge's own
	// discovery functions.
	Server string
	// Tool is the raw name that the upstream gave its tool.
	Tool string
	// Title and Description are the upstream's own words.
	Title, Description string
	Annotations        Annotations
	// TrustAnnotations is the setting of the server: only then readOnlyHint
	// may lower the risk.
	TrustAnnotations bool
	// Args is the tree of the frozen arguments: string, bool, nil,
	// json.Number (float64 and the integer types are understood too), []any
	// and map[string]any.
	Args map[string]any
	Run  RunFacts
	// Meaning is what the call means; nil if nothing is known of that.
	Meaning *Meaning
	// Flow is where the call's data comes from and goes; nil if nobody looked.
	Flow *FlowFacts
	// Changed says how the tool's definition differs from the one that a person
	// accepted; empty if it does not.
	Changed string

	gaps *gaps // what is not known of it: see [Profile.Between]
}

// Path returns the name that globs match: server__tool, or the plain name of a
// discovery function.
func (c *Call) Path() string { return qualified(c.Server, c.Tool) }

func qualified(server, tool string) string {
	if server == "" {
		return tool
	}
	return server + "__" + tool
}

// A Kind says where a reason comes from.
type Kind string

// The kinds of reason.
const (
	KindDenylist     Kind = "denylist"
	KindAsklist      Kind = "asklist"
	KindAllowlist    Kind = "allowlist"
	KindRule         Kind = "rule"
	KindFlow         Kind = "flow"          // what was read somewhere may go where it should not
	KindNotListed    Kind = "not_listed"    // there is an allowlist and nothing on it matches
	KindDefault      Kind = "default"       // the profile's default
	KindRisk         Kind = "risk"          // why the risk is what it is
	KindChanged      Kind = "changed"       // the tool is not the one that a person accepted
	KindQuarantine   Kind = "quarantine"    // nobody has accepted the tool's present definition
	KindAccess       Kind = "access"        // who makes the call does not reach the server, or may not use the profile
	KindOwnFile      Kind = "own_file"      // the built-in denial
	KindGateDisabled Kind = "gate_disabled" // an ask became an allow
	KindPolicyError  Kind = "policy_error"  // deciding went wrong, so: deny
)

// A Reason is one of the reasons for a decision.
type Reason struct {
	Kind Kind `json:"kind"`
	// Disposition is what it asks for; empty if it only sets the risk.
	Disposition Disposition `json:"disposition,omitempty"`
	// Profile is the profile in which it is written: with `extends`, not
	// necessarily the one that decided.
	Profile string `json:"profile,omitempty"`
	// Pattern is the glob that matched.
	Pattern string `json:"pattern,omitempty"`
	// Rule is the rule's name, or its place such as "rules/0".
	Rule string `json:"rule,omitempty"`
	// Action is the rule's action.
	Action Action `json:"action,omitempty"`
	// Risk is the risk that this reason stands for.
	Risk Risk `json:"risk,omitempty"`
	// Undecided reports that the rule counts because its condition could not
	// be decided; Detail says why.
	Undecided bool `json:"undecided,omitempty"`
	// Text is the rule's own reason, from the author of the profile.
	Text string `json:"text,omitempty"`
	// Detail adds what the other fields do not say. It may quote tool names and
	// argument paths, never argument values.
	Detail string `json:"detail,omitempty"`
}

// A Quorum demands more than one approval.
type Quorum struct {
	Need    int      `json:"need"`
	Of      []string `json:"of,omitempty"`
	InOrder bool     `json:"inOrder,omitempty"`
}

// Display bounds how much of the arguments a person is shown; zero means that no
// rule sets a bound.
type Display struct {
	MaxString int `json:"maxString,omitempty"`
	MaxArray  int `json:"maxArray,omitempty"`
	MaxObject int `json:"maxObject,omitempty"`
	MaxDepth  int `json:"maxDepth,omitempty"`
}

// A Decision is what policy says of one call, with every reason. It is a pure
// function of the policy's revision and the [Call].
type Decision struct {
	Disposition Disposition `json:"disposition"`
	// Manual reports that the person must type the tool's name or edit the
	// arguments, on a strong channel. Only with Ask.
	Manual bool `json:"manual,omitempty"`
	// Notify reports that the call is to be announced though it is allowed.
	Notify bool `json:"notify,omitempty"`
	Risk   Risk `json:"risk"`
	// Hinted reports that the risk is high only because the server says of itself that
	// its tool destroys, though it is known what the call means, and that is less.
	Hinted bool `json:"hinted,omitempty"`
	// ReadOnly reports that the call changes nothing, judging by the tool's name or,
	// if its server is trusted, its annotations. Rules do not affect it.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Repeatable reports that the call may be made twice without harm: a rule or
	// the annotations of a trusted server say so, and no rule says otherwise. It is
	// independent of the risk.
	Repeatable bool `json:"repeatable,omitempty"`
	// Reasons are sorted: strictest first, then by where they are written.
	Reasons []Reason `json:"reasons"`
	// Would is what would come of the call, as the action of a rule, if what is only
	// observed were enforced; zero if the same would. Observed are the reasons, the
	// strictest first. Neither has any effect.
	Would    Action   `json:"would,omitempty"`
	Observed []Reason `json:"observed,omitempty"`
	// Timeout is how long people may take. Only with Ask, then above zero.
	Timeout time.Duration `json:"timeoutNs,omitempty"`
	// TimeoutExplicit reports that a rule, a risk or the profile set Timeout, so
	// that it always holds. Otherwise [Set.PausedFor] replaces it once the run is
	// paused, and under FallbackQueue.
	TimeoutExplicit bool `json:"timeoutExplicit,omitempty"`
	// Remember reports whether an approval may be remembered. Only with Ask, and
	// never if a reason, the typed name or several people are needed.
	Remember bool `json:"remember,omitempty"`
	// RequireReason reports whether a verdict needs a reason. Only with Ask.
	RequireReason bool `json:"requireReason,omitempty"`
	// Context reports that people are asked because of what was read before, so that whoever says
	// yes may have that forgotten. Only with Ask.
	Context bool `json:"context,omitempty"`
	// Quorums must all be met; without any, one approval is enough. Only with Ask.
	Quorums []Quorum `json:"quorums,omitempty"`
	// Fallback is what to do when the client cannot ask. Only with Ask; never
	// FallbackAllow for a critical, manual or quorum call.
	Fallback Fallback `json:"fallback,omitempty"`
	// Hidden are the extra argument keys to hide on display, each with the
	// text to show instead (empty: the usual one).
	Hidden map[string]string `json:"hidden,omitempty"`
	// Display are the tighter bounds on what is shown; zero means the usual.
	Display Display `json:"display,omitzero"`
	// GateDisabled reports that the decision was made with evaluation.enabled set
	// to false: a call that would ask is allowed, a denied one stays denied.
	GateDisabled bool `json:"gateDisabled,omitempty"`
	// Profile is the profile's name, empty for the unrestricted one.
	Profile string `json:"profile,omitempty"`
	// Revision is the policy's revision.
	Revision string `json:"revision"`
	// Grounds is the revision of the policy without its rules that only allow: what
	// people have approved stays approved when such a rule is added.
	Grounds string `json:"grounds,omitempty"`
}

// Because returns the reason that decided: the first of the strictest.
func (d Decision) Because() Reason {
	if len(d.Reasons) == 0 {
		return Reason{}
	}
	return d.Reasons[0]
}

// Exceeds reports whether people must say more to d than to one that asks and that they
// have approved. The caller handles a decision that denies.
func (d Decision) Exceeds(approved Decision) bool {
	if d.Disposition != Ask {
		return false
	}
	for _, q := range d.Quorums {
		if !slices.ContainsFunc(approved.Quorums, func(had Quorum) bool { return had.Meets(q) }) {
			return true
		}
	}
	return d.Risk > approved.Risk || d.Manual && !approved.Manual || d.RequireReason && !approved.RequireReason
}

// String returns one line for a person: what the reason comes from, and what it
// asks for.
func (r Reason) String() string {
	var b strings.Builder
	switch r.Kind {
	case KindDenylist, KindAsklist, KindAllowlist:
		fmt.Fprintf(&b, "%s: %q", r.Kind, r.Pattern)
	case KindRule:
		fmt.Fprintf(&b, "rule %s", r.Rule)
		if r.Action != 0 {
			fmt.Fprintf(&b, " (%s)", r.Action)
		}
		if r.Text != "" {
			fmt.Fprintf(&b, ": %s", r.Text)
		}
		if r.Undecided {
			fmt.Fprintf(&b, "; its condition could not be decided: %s", r.Detail)
		}
	case KindFlow:
		b.WriteString(r.Detail)
		if r.Text != "" {
			fmt.Fprintf(&b, ": %s", r.Text)
		}
	case KindRisk:
		if fmt.Fprintf(&b, "risk %s: ", r.Risk); r.Rule == "" {
			b.WriteString(r.Detail)
		} else {
			fmt.Fprintf(&b, "rule %s (%s)", r.Rule, r.Detail)
		}
	default:
		b.WriteString(r.Detail)
	}
	if r.Profile != "" {
		fmt.Fprintf(&b, " [profile %s]", r.Profile)
	}
	return b.String()
}

// kindRank orders reasons of one disposition.
var kindRank = map[Kind]int{
	KindGateDisabled: -3, KindPolicyError: -2, KindQuarantine: -1, KindAccess: -1, KindOwnFile: 0,
	KindChanged: 1, KindDenylist: 2, KindAsklist: 3, KindRule: 4, KindFlow: 4, KindAllowlist: 5, KindNotListed: 6, KindDefault: 7, KindRisk: 8,
}

// sortReasons puts the deciding reason first, and makes the order independent of
// the order in which rules are written.
func sortReasons(reasons []Reason) {
	slices.SortStableFunc(reasons, func(a, b Reason) int {
		aGate, bGate := a.Kind == KindGateDisabled, b.Kind == KindGateDisabled
		switch {
		case aGate != bGate && aGate:
			return -1
		case aGate != bGate:
			return 1
		case a.Disposition != b.Disposition:
			return int(b.Disposition - a.Disposition)
		case a.Action != b.Action && a.Kind == KindRule && b.Kind == KindRule:
			return int(b.Action - a.Action)
		case a.Kind != b.Kind:
			return kindRank[a.Kind] - kindRank[b.Kind]
		}
		if c := strings.Compare(a.Profile, b.Profile); c != 0 {
			return c
		}
		if c := strings.Compare(a.Rule, b.Rule); c != 0 {
			return c
		}
		return strings.Compare(a.Pattern+a.Detail, b.Pattern+b.Detail)
	})
}

// limitFallback ensures that a call that is critical, manual or needs several
// people is never allowed because nobody can be asked.
func (d *Decision) limitFallback() {
	if d.Fallback == FallbackAllow && (d.Risk == Critical || d.Manual || len(d.Quorums) > 0) {
		d.Fallback = FallbackDeny
	}
}

// rank orders decisions by strictness: deny, manual, ask, notify, allow. A
// decision without a known disposition is the strictest.
func (d *Decision) rank() int {
	switch {
	case d.Disposition == Allow && !d.Notify:
		return 0
	case d.Disposition == Allow:
		return 1
	case d.Disposition == Ask && !d.Manual:
		return 2
	case d.Disposition == Ask:
		return 3
	}
	return 4
}

// Stricter merges two decisions on one call, such as those of the policy that its
// run started with and of the current one. The stricter disposition counts; if
// both ask, the answer must meet the demands of both. Reasons and hidden keys come
// from both; profile and revision from the stricter decision, a's if they are
// equal.
func Stricter(a, b Decision) Decision {
	d, other := a, b
	if b.rank() > a.rank() {
		d, other = b, a
	}
	if d.Disposition != Allow && d.Disposition != Ask {
		d.Disposition = Deny
	}
	d.Risk = max(a.Risk, b.Risk)
	d.Hinted = (a.Hinted || a.Risk < High) && (b.Hinted || b.Risk < High) && (a.Hinted || b.Hinted)
	d.Notify = a.Notify || b.Notify
	d.ReadOnly, d.Repeatable = a.ReadOnly && b.ReadOnly, a.Repeatable && b.Repeatable
	d.GateDisabled = a.GateDisabled && b.GateDisabled || d.GateDisabled && a.rank() != b.rank()
	d.Reasons = slices.Clone(d.Reasons)
	for _, r := range other.Reasons {
		if !slices.Contains(d.Reasons, r) {
			d.Reasons = append(d.Reasons, r)
		}
	}
	if len(other.Hidden) > 0 {
		d.Hidden = maps.Clone(d.Hidden)
		if d.Hidden == nil {
			d.Hidden = map[string]string{}
		}
		for key, shown := range other.Hidden {
			if _, ok := d.Hidden[key]; !ok {
				d.Hidden[key] = shown
			}
		}
	}
	d.Display = d.Display.tighter(other.Display)
	if d.Disposition == Ask && other.Disposition == Ask {
		d.Timeout = min(a.Timeout, b.Timeout)
		d.TimeoutExplicit = a.TimeoutExplicit || b.TimeoutExplicit
		d.Remember = a.Remember && b.Remember
		d.RequireReason = a.RequireReason || b.RequireReason
		d.Quorums = tidyQuorums(slices.Concat(a.Quorums, b.Quorums))
		d.Fallback = min(a.Fallback, b.Fallback)
	}
	d.Context = d.Disposition == Ask && (a.Context || b.Context)
	d.limitFallback()
	d.observedBoth(&a, &b)
	return d
}

// MayForget reports whether who says yes may have what was read before forgotten with it: people
// are asked because of that, and one yes of one person is enough.
func (d Decision) MayForget() bool {
	return d.Context && !d.Manual && len(d.Quorums) == 0 && d.Risk < Critical
}
