package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/profiles"
)

// A Role says what an argument of a known tool may be in a further call.
type Role string

// The roles.
const (
	Text  Role = "text"  // what is written or sent: anything
	Meant Role = "meant" // a path, a host or a recipient: what the rule says of those
	Bound Role = "bound" // as it was: a place, a choice, an amount, a number
)

// LearnOptions say how a profile is learnt. All but Progress are required, but for Extends,
// which is empty if the profile extends none.
type LearnOptions struct {
	Name    string // of the profile
	Extends string // as a configuration writes it, such as builtin:coding@1
	// Rows reads the log.
	Rows func() Rows
	// With is the policy with one more profile.
	With  func(name string, spec profiles.ProfileSpec) (*profiles.Set, error)
	Facts Facts
	// Known says what is known of a tool that policy may go by.
	Known    func(server, tool string) Meaning
	Progress func(rows int)
}

// A Learnt is a profile that lets pass what was done, and asks about the rest.
type Learnt struct {
	Name    string               `json:"name"`
	Profile profiles.ProfileSpec `json:"profile"`
	Lines   []LearntRule         `json:"evidence"` // of each rule of the profile
	Calls   int                  `json:"calls"`    // that were done
	Allowed int                  `json:"allowed"`  // of them, by the profile
	Left    []LeftCalls          `json:"asked"`    // the rest of them, by why
	Refused int                  `json:"refused"`  // calls that were refused: it lets none of them pass
	// Dropped are rules that would have let a refused call pass.
	Dropped int `json:"dropped"`
}

// A LearntRule is what speaks for one rule.
type LearntRule struct {
	Rule     string  `json:"rule"` // its name
	Calls    int     `json:"calls"`
	Runs     int     `json:"runs"`
	Approved int     `json:"approved"` // by a person
	First    Case    `json:"first"`
	Last     Case    `json:"last"`
	Tools    []toolN `json:"tools"`
}

type toolN struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

// LeftCalls are calls that were done and for which there is no rule.
type LeftCalls struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Learn writes the smallest profile that lets pass what the log has as done, as far as it
// can be said narrowly, and asks about the rest. Nothing is generalised but by evidence:
// three files of the workspace stand for it, or a yes that was for all of it, three addresses at a host that say nothing
// but where stand for that host, and texts that are written or sent may differ. All else is
// bound to what it was. What deletes, spends or runs code stays a question, and a rule that
// would let a call pass that was refused, by a person or by policy, is left out.
func Learn(o LearnOptions) (*Learnt, error) {
	base := profiles.ProfileSpec{Default: new("ask")}
	if o.Extends != "" {
		base.Extends = &o.Extends
	}
	l := &learner{o: o, out: &Learnt{Name: o.Name, Profile: base, Lines: []LearntRule{}}, left: map[string]int{}, known: map[[2]string]Meaning{}}
	set, err := o.With(o.Name, base)
	if err != nil {
		return nil, err
	}
	_, err = ReplayLog(o.Rows(), ReplayOptions{Policy: set, Facts: o.Facts, By: o.Name, Each: l.note, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	rules, err := l.sound(l.rules())
	if err != nil {
		return nil, err
	}
	return l.finish(rules)
}

// A learner goes through the calls of a log.
type learner struct {
	o       LearnOptions
	out     *Learnt
	asked   []*learntCall // done, and asked about by what is extended
	refused []Replayed
	left    map[string]int // why there is no rule, and for how many calls
	known   map[[2]string]Meaning
}

// meaning is what is known of a tool.
func (l *learner) meaning(server, tool string) Meaning {
	key := [2]string{server, tool}
	m, ok := l.known[key]
	if !ok {
		m = l.o.Known(server, tool)
		l.known[key] = m
	}
	return m
}

// A learntCall is a call for which a rule can be made.
type learntCall struct {
	Replayed
	rule *learntRule
}

// note sorts one call: allowed already, to be learnt, or refused.
func (l *learner) note(one Replayed) {
	switch {
	case !one.Sent || one.No:
		l.refused = append(l.refused, one)
		return
	case one.Gap != "":
		l.left["the log does not have all that matters ("+one.Gap+")"]++
	case one.Is == "allow" || one.Is == "notify":
		l.out.Allowed++
	case one.Is != "ask" || one.Decided.Because().Kind != profiles.KindDefault:
		l.left["the profile that it extends asks each time"]++
	default:
		l.asked = append(l.asked, &learntCall{Replayed: one})
	}
	l.out.Calls++
}

// rules makes the rules of all calls that are alike.
func (l *learner) rules() []*learntRule {
	by := map[string]*learntRule{}
	for _, c := range l.asked {
		shape, why := l.shapeOf(c)
		if why != "" {
			l.left[why]++
			continue
		}
		key := shape.key()
		if by[key] == nil {
			by[key] = &learntRule{shape: shape}
		}
		c.rule = by[key]
		c.rule.add(c, shape)
	}
	var all []*learntRule
	for _, key := range slices.Sorted(maps.Keys(by)) {
		all = append(all, by[key])
	}
	slices.SortStableFunc(all, func(a, b *learntRule) int { return cmp.Compare(len(b.calls), len(a.calls)) })
	named := map[string]int{}
	for _, r := range all {
		r.name = cut(r.says(), longestName-len(": 10000"))
		if named[r.name]++; named[r.name] > 1 {
			r.name += fmt.Sprintf(": %d", named[r.name])
		}
	}
	return all
}

// sound returns the rules that let no refused call pass, and none that the others make
// needless. Of a refused call that the log does not show in full the worst is assumed.
func (l *learner) sound(rules []*learntRule) ([]*learntRule, error) {
	rules = slices.DeleteFunc(rules, func(r *learntRule) bool {
		return slices.ContainsFunc(l.refused, func(no Replayed) bool { return no.Gap != "" && no.Server == r.shape.server && r.tools[no.Tool] != nil }) && l.drop(r)
	})
	for {
		profile, err := l.profile(rules)
		if err != nil {
			return nil, err
		}
		bad := map[string]bool{}
		for _, no := range l.refused {
			if d := profile.Decide(no.Made); d.Disposition == profiles.Allow && no.Gap == "" {
				bad[d.Because().Rule] = true
			}
		}
		before := len(rules)
		rules = slices.DeleteFunc(rules, func(r *learntRule) bool { return bad[r.name] && l.drop(r) })
		if len(rules) == before {
			l.askAbout(profile)
			return rules, nil
		}
	}
}

// askAbout puts the tools of refused calls on the asklist that what is extended lets pass.
func (l *learner) askAbout(profile *profiles.Profile) {
	for _, no := range l.refused {
		path := no.Made.Path()
		if no.Server == "" || slices.Contains(l.out.Profile.Asklist, path) || strings.ContainsAny(path, globSigns) {
			continue
		}
		if strict, loose := profile.Between(no.Made, profiles.Gaps{}); strict.Disposition == profiles.Allow || loose.Disposition == profiles.Allow {
			l.out.Profile.Asklist = append(l.out.Profile.Asklist, path)
		}
	}
	slices.Sort(l.out.Profile.Asklist)
}

func (l *learner) drop(r *learntRule) bool {
	l.out.Dropped++
	l.left["a call like it was refused"] += len(r.calls)
	return true
}

// profile is the profile with these rules.
func (l *learner) profile(rules []*learntRule) (*profiles.Profile, error) {
	spec := l.out.Profile
	spec.Rules = nil
	for _, r := range rules {
		spec.Rules = append(spec.Rules, r.spec())
	}
	set, err := l.o.With(l.o.Name, spec)
	if err != nil {
		return nil, fmt.Errorf("the profile that was learnt is not valid: %w", err)
	}
	p, ok := set.Profile(l.o.Name)
	if !ok {
		return nil, errors.New("the profile that was learnt is not in the policy")
	}
	l.out.Profile = spec
	return p, nil
}

// finish counts what the rules let pass.
func (l *learner) finish(rules []*learntRule) (*Learnt, error) {
	profile, err := l.profile(rules)
	if err != nil {
		return nil, err
	}
	for _, c := range l.asked {
		switch {
		case profile.Decide(c.Made).Disposition == profiles.Allow:
			l.out.Allowed++
		case c.rule != nil && slices.Contains(rules, c.rule):
			l.left["a rule for it cannot be decided"]++
		}
	}
	for _, r := range rules {
		l.out.Lines = append(l.out.Lines, r.evidence())
	}
	l.out.Refused = len(l.refused)
	for _, why := range slices.Sorted(maps.Keys(l.left)) {
		l.out.Left = append(l.out.Left, LeftCalls{why, l.left[why]})
	}
	slices.SortStableFunc(l.out.Left, func(a, b LeftCalls) int { return cmp.Compare(b.Count, a.Count) })
	return l.out, nil
}

// longestName is how many bytes the name of a rule may have.
const longestName = 64

// cut returns the beginning of a text, of at most n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.TrimSpace(text[:n])
}

// fewest is how many different files or addresses stand for their folder or host.
const fewest = 3

// A learntRule is a rule with the calls that speak for it.
type learntRule struct {
	name  string // of its own
	shape shape
	calls []*learntCall
	tools map[string]*learntTool
	paths map[string]bool // in the workspace
	urls  map[string]bool
}

// A learntTool is a tool that a rule lets pass.
type learntTool struct {
	calls int
	names map[string]bool // of the arguments that its calls had
}

func (r *learntRule) add(c *learntCall, s shape) {
	if r.tools == nil {
		r.tools, r.paths, r.urls = map[string]*learntTool{}, map[string]bool{}, map[string]bool{}
	}
	r.calls = append(r.calls, c)
	tool := r.tools[c.Tool]
	if tool == nil {
		tool = &learntTool{names: map[string]bool{}}
		r.tools[c.Tool] = tool
	}
	tool.calls++
	for name := range c.Made.Args {
		tool.names[name] = true
	}
	for _, p := range s.inside {
		r.paths[p] = true
	}
	for _, u := range s.urls {
		r.urls[u] = true
	}
}

// says is what the rule is for, in a few words.
func (r *learntRule) says() string {
	parts := []string{"learnt", r.shape.server, strings.Join(r.shape.effects, " "), r.shape.where}
	for _, list := range [][]string{r.shape.hosts, r.shape.recipients, r.shape.bound} {
		parts = append(parts, list...)
	}
	if !r.shape.across {
		parts = append(parts, slices.Sorted(maps.Keys(r.tools))...)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}

// spec writes the rule.
func (r *learntRule) spec() profiles.RuleSpec {
	s := r.shape
	rule := profiles.RuleSpec{Name: new(r.name), Known: new(true), Action: new("allow"), Effects: s.effects, Net: []string{s.net}}
	for _, tool := range slices.Sorted(maps.Keys(r.tools)) {
		rule.Tools = append(rule.Tools, s.server+"__"+tool)
	}
	if s.where != "" {
		rule.Where = []string{s.where}
	}
	var names []string
	switch {
	case len(r.paths) >= fewest, len(r.paths) > 0 && r.wider():
		rule.Paths, names = []string{"workspace"}, s.names
	case len(r.paths) > 0:
		rule.Paths = slices.Sorted(maps.Keys(r.paths))
	}
	rule.Recipients = s.recipients
	terms := slices.Concat([]string{r.named()}, s.bound, names)
	if len(s.hosts) > 0 {
		rule.Hosts = s.hosts
		if len(r.urls) >= fewest {
			terms = append(terms, s.plain...)
		} else {
			terms = append(terms, oneOf(s.address, slices.Sorted(maps.Keys(r.urls))))
		}
	}
	rule.When = &profiles.When{Expr: strings.Join(append(terms, s.texts...), " && ")}
	return rule
}

// wider reports whether a person has said yes to calls like these for a session: such a yes
// was for the whole workspace, and said so.
func (r *learntRule) wider() bool {
	return slices.ContainsFunc(r.calls, func(c *learntCall) bool { return c.Yes && strings.HasPrefix(c.Answer, "yes, session") })
}

// named is the condition on the names of all arguments: those that calls of the tool had.
func (r *learntRule) named() string {
	var all []string
	for _, tool := range slices.Sorted(maps.Keys(r.tools)) {
		names := slices.Sorted(maps.Keys(r.tools[tool].names))
		text := namesIn("args", names)
		if len(r.tools) > 1 {
			text = "tool == " + quote(tool) + " && " + text
		}
		all = append(all, text)
	}
	if len(all) > 1 {
		return "(" + strings.Join(all, " || ") + ")"
	}
	return all[0]
}

// namesIn is a condition on the names of all members.
func namesIn(place string, names []string) string {
	if len(names) == 0 {
		return "size(" + place + ") == 0"
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return place + ".all(name, name in [" + strings.Join(quoted, ", ") + "])"
}

// oneOf is a condition on a text.
func oneOf(place string, values []string) string {
	if len(values) == 1 {
		return place + " == " + quote(values[0])
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return place + " in [" + strings.Join(quoted, ", ") + "]"
}

// evidence says what speaks for the rule.
func (r *learntRule) evidence() LearntRule {
	e := LearntRule{Rule: r.name, Calls: len(r.calls), First: r.calls[0].Case, Last: r.calls[0].Case}
	runs := map[string]bool{}
	for _, c := range r.calls {
		runs[c.Run] = true
		if c.Yes {
			e.Approved++
		}
		if c.Time.Before(e.First.Time) {
			e.First = c.Case
		}
		if !c.Time.Before(e.Last.Time) {
			e.Last = c.Case
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(r.tools)) {
		e.Tools = append(e.Tools, toolN{r.shape.server + "__" + tool, r.tools[tool].calls})
	}
	e.Runs = len(runs)
	return e
}
