package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// maxTime is the longest time-out: waiting forever does not exist.
const maxTime = 365 * 24 * time.Hour

// Parse checks the section and builds the profiles. It returns either a set
// or every problem it found, sorted by path; never both. The last of the
// options counts.
func Parse(spec Spec, options ...Options) (*Set, []Problem) {
	var o Options
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	b := &builder{spec: spec, builtin: o.Builtins, layers: map[string]*layer{}}
	set := b.build(newOwnFiles(o.OwnFiles))
	if len(b.problems) > 0 {
		sort.SliceStable(b.problems, func(i, j int) bool { return b.problems[i].Path < b.problems[j].Path })
		return nil, b.problems
	}
	set.spec, set.options = spec, o
	for _, p := range set.profiles {
		content, context := p.Flows()
		set.flowContent, set.flowContext = set.flowContent || content, set.flowContext || context
	}
	return set, nil
}

// maxProfiles is how many profiles there may be: each is an eval tool of its own, which
// clients list and models read.
const maxProfiles = 64

type builder struct {
	spec     Spec
	builtin  map[string]*ProfileSpec
	layers   map[string]*layer
	problems []Problem
}

// A layer is one profile as written, compiled, before `extends`.
type layer struct {
	name             string
	spec             *ProfileSpec
	deny, ask, allow []listEntry
	rules            []*rule
	flows            []*flow
	profile          *Profile // nil until it is resolved
	resolving        bool
}

func (b *builder) problem(path, message, hint string) {
	b.problems = append(b.problems, Problem{Path: path, Message: message, Hint: hint, Offset: -1})
}

func (b *builder) syntax(path string, err *syntaxError) {
	b.problems = append(b.problems, Problem{Path: path, Message: err.message, Hint: err.hint, Offset: err.offset})
}

func (b *builder) build(own ownFiles) *Set {
	s := &Set{profiles: map[string]*Profile{}, enabled: b.spec.Enabled == nil || *b.spec.Enabled,
		pausedFor: defaultPausedFor, patience: defaultPatience}
	unknown := defaultUnknown
	global := RiskTable{}
	if r := b.spec.Risk; r != nil {
		unknown = Risk(b.oneOf("/risk/unknown", r.Unknown, riskWords[1:], int(defaultUnknown)-1) + 1)
		global = RiskTable{Low: r.Low, Medium: r.Medium, High: r.High, Critical: r.Critical}
	}
	b.checkTable("/risk", &global)
	b.checkTime("/timeout", b.spec.Timeout)
	if d := b.spec.PausedFor; d != nil {
		b.checkTime("/pausedFor", d)
		s.pausedFor = time.Duration(*d)
	}
	if p := b.spec.ClientPatience; p != nil {
		if p.Default != nil {
			b.checkTime("/clientPatience", p.Default)
			s.patience = time.Duration(*p.Default)
		}
		s.patienceOf = p.Clients
		for _, client := range sortedKeys(p.Clients) {
			d := p.Clients[client]
			b.checkTime(pointer("/clientPatience", client), &d)
		}
	}
	if n := len(b.spec.Profiles); n > maxProfiles {
		b.problem("/profiles", fmt.Sprintf("%d profiles, the limit is %d: each is an eval tool of its own", n, maxProfiles),
			"keep those that clients use; --env NAME lays those of another environment over them")
		return s
	}
	b.checkNames()
	for _, name := range sortedKeys(b.spec.Profiles) {
		b.layers[name] = b.compile(name, b.spec.Profiles[name])
	}
	used := b.builtins()
	revision, err := revisionOf(b.spec, used, own)
	if err != nil {
		b.problem("", "computing the revision: "+err.Error(), "")
	}
	s.revision = revision
	grounds, err := revisionOf(withoutAllows(b.spec), used, own)
	if err != nil {
		b.problem("", "computing the grounds: "+err.Error(), "")
	}
	if len(used) > 0 {
		s.builtins = map[string]*ProfileSpec{}
		for name, spec := range used {
			s.builtins[strings.TrimPrefix(name, BuiltinPrefix)] = spec
		}
	}

	base := Profile{enabled: s.enabled, revision: revision, grounds: grounds, own: own, unknown: unknown}
	s.unrestricted = &Profile{}
	*s.unrestricted = base
	b.buildAskSettings(s.unrestricted, nil, &global)

	for _, name := range sortedKeys(b.spec.Profiles) {
		s.profiles[name] = b.resolve(b.layers[name], &base, &global)
	}
	s.defaultProfile = s.unrestricted
	if name := b.spec.DefaultProfile; name != nil {
		if p, ok := s.profiles[*name]; ok {
			s.defaultProfile = p
		} else {
			b.problem("/defaultProfile", fmt.Sprintf("there is no profile %q", *name), near(*name, sortedKeys(b.spec.Profiles)))
		}
	}
	return s
}

// BuiltinPrefix begins the name of a profile that is part of the program, in
// `extends`.
const BuiltinPrefix = "builtin:"

// builtins compiles the profiles of the program that others extend.
func (b *builder) builtins() map[string]*ProfileSpec {
	used := map[string]*ProfileSpec{}
	for _, l := range b.layers {
		if l.spec.Extends == nil {
			continue
		}
		if name, ok := strings.CutPrefix(*l.spec.Extends, BuiltinPrefix); ok && b.builtin[name] != nil {
			used[*l.spec.Extends] = b.builtin[name]
		}
	}
	for name, spec := range used {
		b.layers[name] = b.compile(name, spec)
	}
	return used
}

// extendable returns the names that `extends` may have.
func (b *builder) extendable() []string {
	names := sortedKeys(b.spec.Profiles)
	for _, name := range sortedKeys(b.builtin) {
		names = append(names, BuiltinPrefix+name)
	}
	return names
}

// checkNames checks the profiles' names: each becomes part of a tool's name, and
// tools whose names differ only in case are the same to some clients and many
// people.
func (b *builder) checkNames() {
	folded := map[string]string{}
	for _, name := range sortedKeys(b.spec.Profiles) {
		at := pointer("/profiles", name)
		switch {
		case name == "":
			b.problem(at, "empty profile name", "")
		case len(name) > 32:
			b.problem(at, fmt.Sprintf("profile name of %d characters, the limit is 32", len([]rune(name))), "")
		case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || !plainName(name):
			hint := ""
			if fixed := strings.NewReplacer("-", "_", " ", "_", ".", "_").Replace(name); plainName(fixed) {
				hint = fmt.Sprintf("did you mean %q?", fixed)
			}
			b.problem(at, fmt.Sprintf("profile name %q: want letters, digits and underscore", name), hint)
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			b.problem(at, fmt.Sprintf("profile names %q and %q differ only by case", other, name), "")
		}
		folded[strings.ToLower(name)] = name
	}
}

func plainName(name string) bool {
	for i := 0; i < len(name); i++ {
		if !wordByte(name[i]) || name[i] >= 0x80 {
			return false
		}
	}
	return true
}

// compile checks one profile by itself.
func (b *builder) compile(name string, spec *ProfileSpec) *layer {
	l := &layer{name: name, spec: spec}
	at := pointer("/profiles", name)
	if spec == nil {
		b.problem(at, "the profile is null", "write {} for a profile that adds nothing")
		l.spec = &ProfileSpec{}
		return l
	}
	l.allow = b.entries(l, "allowlist", spec.Allowlist)
	l.deny = b.entries(l, "denylist", spec.Denylist)
	l.ask = b.entries(l, "asklist", spec.Asklist)
	b.oneOf(at+"/default", spec.Default, defaultActionWords, 0)
	b.oneOf(at+"/elicitationFallback", spec.ElicitationFallback, fallbackWords, 0)
	b.checkTime(at+"/timeout", spec.Timeout)
	if spec.Risk != nil {
		b.checkTable(at+"/risk", spec.Risk)
	}
	if spec.Limits != nil {
		b.checkLimits(at+"/limits", spec.Limits)
	}
	b.checkObserve(at, spec.Observe)
	l.flows = b.flows(l)
	labels := map[string]bool{}
	for i := range spec.Rules {
		r := b.rule(l, i, &spec.Rules[i])
		if labels[r.label] {
			b.problem(r.at+"/name", fmt.Sprintf("another rule of this profile is called %q", r.label), "")
		}
		labels[r.label] = true
		l.rules = append(l.rules, r)
	}
	return l
}

func (b *builder) entries(l *layer, list string, texts []string) []listEntry {
	var entries []listEntry
	at := pointer("/profiles", l.name) + "/" + list
	for i, p := range b.patterns(at, texts) {
		entries = append(entries, listEntry{pattern: p, profile: l.name, at: pointer(at, strconv.Itoa(i)), observed: l.spec.observes(list)})
	}
	return entries
}

func (b *builder) patterns(at string, texts []string) []pattern {
	patterns := make([]pattern, 0, len(texts))
	for i, text := range texts {
		p, err := compilePattern(text)
		if err != nil {
			b.syntax(pointer(at, strconv.Itoa(i)), err)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

func (b *builder) rule(l *layer, i int, spec *RuleSpec) *rule {
	r := &rule{label: fmt.Sprintf("rules/%d", i), profile: l.name, at: pointer("/profiles", l.name) + "/rules/" + strconv.Itoa(i), spec: spec, observed: l.spec.observesAll() || isTrue(spec.Observe)}
	problems := len(b.problems)
	if spec.Name != nil {
		r.label = *spec.Name
		if r.label == "" || len(r.label) > 64 {
			b.problem(r.at+"/name", "want a name of 1 to 64 bytes", "")
		}
	}
	conditions := b.meaning(r.at, spec)
	r.meant = len(conditions) > 0
	r.tools = b.patterns(r.at+"/tools", spec.Tools)
	switch {
	case len(spec.Tools) > 0:
	case len(conditions) > 0:
		r.tools = []pattern{anyTool}
	default:
		b.problem(r.at+"/tools", "the rule names no tool", `["*"] means every tool`)
	}
	if spec.When != nil {
		conditions = append(conditions, b.condition(r.at+"/when", spec.When))
	}
	switch len(conditions) {
	case 0:
	case 1:
		r.when = conditions[0]
	default:
		r.when = conditions
	}
	r.action = Action(b.oneOf(r.at+"/action", spec.Action, actionWords[1:], -1) + 1)
	r.risk = Risk(b.oneOf(r.at+"/risk", spec.Risk, riskWords[1:], -1) + 1)
	if spec.Reason != nil {
		r.reason = *spec.Reason
		if strings.TrimSpace(r.reason) == "" {
			b.problem(r.at+"/reason", "the reason is empty", "")
		}
	}
	b.checkTime(r.at+"/timeout", spec.Timeout)
	if spec.Timeout != nil {
		r.timeout = time.Duration(*spec.Timeout)
	}
	r.repeatable, r.remember, r.requireReason = spec.Repeatable, spec.Remember, spec.RequireReason
	r.quorum = b.quorum(r.at+"/quorum", spec.Quorum)
	for i, text := range spec.Check {
		e, err := compileExpr(text)
		if err != nil {
			b.syntax(r.at+"/check/"+strconv.Itoa(i), err)
			continue
		}
		r.checks = append(r.checks, e)
	}
	r.hidden = spec.Hidden
	for _, key := range sortedKeys(spec.Hidden) {
		if key == "" {
			b.problem(r.at+"/hidden", "an empty key hides nothing", "")
		}
	}
	if d := spec.Display; d != nil {
		at := r.at + "/display"
		r.display = Display{
			MaxString: b.positive(at+"/maxString", d.MaxString),
			MaxArray:  b.positive(at+"/maxArray", d.MaxArray),
			MaxObject: b.positive(at+"/maxObject", d.MaxObject),
			MaxDepth:  b.positive(at+"/maxDepth", d.MaxDepth),
		}
	}
	b.contradictions(r, spec)
	if spec.Examples != nil && len(b.problems) == problems {
		b.examples(r, spec)
	}
	return r
}

// contradictions refuses settings of one rule that contradict each other.
func (b *builder) contradictions(r *rule, spec *RuleSpec) {
	for _, s := range []struct {
		key string
		set bool
	}{
		{"timeout", spec.Timeout != nil},
		{"remember", spec.Remember != nil},
		{"requireReason", spec.RequireReason != nil},
		{"quorum", spec.Quorum != nil},
	} {
		if d := r.action.disposition(); s.set && (d == Deny || d == Allow) {
			b.problem(r.at+"/"+s.key, fmt.Sprintf("%s says how to ask, but the action is %s, which asks nobody", s.key, r.action),
				"leave one of them out, or make the action ask")
		}
	}
	if r.action == ActionDeny && len(spec.Check) > 0 {
		b.problem(r.at+"/check", "a denied call is never checked", "leave check or the action out")
	}
	if r.action == ActionManual && spec.Remember != nil && *spec.Remember {
		b.problem(r.at+"/remember", "a manual call is confirmed by hand every time and cannot be remembered", "")
	}
	if spec.Action == nil && spec.Risk == nil && spec.Repeatable == nil && spec.Timeout == nil && spec.Remember == nil && spec.RequireReason == nil &&
		spec.Quorum == nil && len(spec.Check) == 0 && len(spec.Hidden) == 0 && spec.Display == nil {
		b.problem(r.at, "the rule says nothing", "give it an action or a risk")
	}
}

func (b *builder) condition(at string, w *When) condition {
	if w.Params == nil {
		e, err := compileExpr(w.Expr)
		if err != nil {
			b.syntax(at, err)
			return nil
		}
		return e
	}
	if len(w.Params) == 0 {
		b.problem(at, "an empty list tests nothing", "leave `when` out to match every call")
	}
	var c conjunction
	for i, spec := range w.Params {
		t, where, err := compileParam(spec)
		if err != nil {
			b.syntax(at+"/"+strconv.Itoa(i)+"/"+where, err)
			continue
		}
		c = append(c, t)
	}
	return c
}

// examples runs the calls that the rule must and must not apply to.
func (b *builder) examples(r *rule, spec *RuleSpec) {
	for _, group := range []struct {
		key   string
		want  bool
		calls []ExampleSpec
	}{{"match", true, spec.Examples.Match}, {"noMatch", false, spec.Examples.NoMatch}} {
		for i, example := range group.calls {
			at := fmt.Sprintf("%s/examples/%s/%d", r.at, group.key, i)
			name := ""
			one := false
			switch {
			case example.Tool != nil:
				name, one = *example.Tool, true
			case len(r.tools) == 1:
				name, one = r.tools[0].name()
			}
			if !one {
				b.problem(at, "the example names no tool", "the rule is for more than one, so say which")
				continue
			}
			call := Call{Tool: name}
			if server, tool, ok := strings.Cut(name, "__"); ok {
				call.Server, call.Tool = server, tool
			}
			if len(example.Args) > 0 {
				d := json.NewDecoder(bytes.NewReader(example.Args))
				d.UseNumber()
				if err := d.Decode(&call.Args); err != nil || call.Args == nil {
					b.problem(at+"/args", "want an object", "")
					continue
				}
			}
			if got, why := r.applies(&call); got != group.want {
				message := "the rule does not apply to this example"
				if got {
					message = "the rule applies to this example"
				}
				b.problem(at, message+": "+why, "")
			}
		}
	}
}

// applies reports whether the rule takes part in the decision on the call.
func (r *rule) applies(call *Call) (bool, string) {
	f := &facts{call: call, path: call.Path()}
	if _, ok := anyMatch(r.tools, f.path); !ok {
		return false, "it is for other tools"
	}
	if r.when == nil {
		return true, "it has no condition"
	}
	switch truth, why := r.when.eval(f); {
	case truth == yes:
		return true, "the condition is true"
	case truth == no:
		return false, "the condition is false"
	case r.action.disposition() == Allow:
		return false, "the condition cannot be decided, which counts as false: " + why
	default:
		return true, "the condition cannot be decided, which counts as true: " + why
	}
}

// oneOf returns the index of the word, or absent if there is no word or it is
// unknown.
func (b *builder) oneOf(at string, w *string, words []string, absent int) int {
	if w == nil {
		return absent
	}
	for i, known := range words {
		if *w == known {
			return i
		}
	}
	b.problem(at, fmt.Sprintf("unknown word %q, want one of %s", *w, oneOf(words)), near(*w, words))
	return absent
}

func (b *builder) checkTime(at string, d *Duration) {
	switch {
	case d == nil:
	case *d <= 0:
		b.problem(at, fmt.Sprintf("%s is no time to wait; waiting forever does not exist, and a time-out always denies", *d), "")
	case time.Duration(*d) > maxTime:
		b.problem(at, fmt.Sprintf("%s is too long, the limit is %s", *d, Duration(maxTime)), "")
	}
}

func (b *builder) checkTable(at string, t *RiskTable) {
	for r := Low; r <= Critical; r++ {
		if row := t.of(r); row != nil {
			at := at + "/" + r.String()
			b.checkTime(at+"/timeout", row.Timeout)
			b.quorum(at+"/quorum", row.Quorum)
		}
	}
}

func (b *builder) quorum(at string, q *QuorumSpec) *Quorum {
	if q == nil {
		return nil
	}
	if q.Need == nil || *q.Need < 1 || *q.Need > 16 {
		b.problem(at+"/need", "want the number of people who must agree, 1 to 16", "")
		return nil
	}
	for i, who := range q.Of {
		if who == "" || slices.Contains(q.Of[:i], who) {
			b.problem(at+"/of/"+strconv.Itoa(i), "want different approvers or roles", "")
		}
	}
	if isTrue(q.InOrder) && len(q.Of) < *q.Need {
		b.problem(at+"/inOrder", fmt.Sprintf("an order of %d needs as many approvers or roles in `of`", *q.Need), "")
	}
	return q.quorum()
}

func (q *QuorumSpec) quorum() *Quorum {
	if q.Need == nil {
		return nil
	}
	return &Quorum{Need: *q.Need, Of: slices.Clone(q.Of), InOrder: isTrue(q.InOrder)}
}

func (b *builder) checkLimits(at string, l *Limits) {
	b.checkTime(at+"/cpu", l.CPU)
	b.checkTime(at+"/call", l.Call)
	b.positive(at+"/calls", l.Calls)
	b.positive(at+"/parallel", l.Parallel)
	for _, s := range []struct {
		key  string
		size *Size
	}{{"heap", l.Heap}, {"source", l.Source}, {"input", l.Input}, {"logs", l.Logs}, {"result", l.Result}, {"reply", l.Reply}} {
		if s.size != nil && *s.size <= 0 {
			b.problem(at+"/"+s.key, "a limit must be above zero", "")
		}
	}
}

func (b *builder) positive(at string, n *int) int {
	if n == nil {
		return 0
	}
	if *n <= 0 {
		b.problem(at, "a limit must be above zero", "")
	}
	return *n
}

// pointer appends a key to a JSON pointer.
func pointer(at, key string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func oneOf(words []string) string {
	var named []string
	for _, w := range words {
		if w != "" {
			named = append(named, w)
		}
	}
	return strings.Join(named, ", ")
}

// near suggests what a mistaken word may have meant.
func near(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if len(word) >= 3 && strings.HasPrefix(strings.ToLower(k), strings.ToLower(word)) {
			return fmt.Sprintf("did you mean %q?", k)
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// flows compiles the rules about flows of one profile.
func (b *builder) flows(l *layer) (all []*flow) {
	for i := range l.spec.Flows {
		spec := &l.spec.Flows[i]
		f := &flow{label: fmt.Sprintf("flows/%d", i), profile: l.name, at: pointer("/profiles", l.name) + "/flows/" + strconv.Itoa(i),
			spec: spec, observed: l.spec.observesAll() || isTrue(spec.Observe)}
		needed := func(key string, v *string) string {
			if v == nil {
				b.problem(f.at, fmt.Sprintf("the flow has no %q", key), `write {"from": "untrusted", "to": "external", "action": "ask", "by": "content"}`)
				return ""
			}
			return *v
		}
		f.from, f.to = needed("from", spec.From), needed("to", spec.To)
		for key, v := range map[string]*string{"from": spec.From, "to": spec.To} {
			if v != nil && !ValidLabel(*v) {
				b.problem(f.at+"/"+key, fmt.Sprintf("no label: %q", *v), "labels have up to 32 small letters, digits, dashes and underscores, a letter first")
			}
		}
		f.content = needed("by", spec.By) == byContent
		if spec.By != nil {
			b.oneOf(f.at+"/by", spec.By, byWords, 0)
		}
		switch action := needed("action", spec.Action); action {
		case "":
		case "ask":
			f.says = Ask
		case "deny":
			f.says = Deny
		default:
			b.problem(f.at+"/action", fmt.Sprintf("no action of a flow: %q", action), `want "ask" or "deny": a flow only makes decisions stricter`)
		}
		if spec.Reason != nil {
			if f.reason = *spec.Reason; strings.TrimSpace(f.reason) == "" {
				b.problem(f.at+"/reason", "the reason is empty", "")
			}
		}
		all = append(all, f)
	}
	return all
}
