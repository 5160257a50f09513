package profiles

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// The generator makes small worlds in which everything collides: three
// profiles in a chain, nine tools, patterns that overlap.

var (
	worldTools    = []string{"a__get_x", "a__delete_x", "a__foo", "b__get_x", "b__boo", "b__zoo", "search_tools"}
	worldPatterns = []string{"*", "a__*", "a__get_x", "*delete*", "b__?oo", "{a,b}__foo", "[ab]__get_x", "search_tools", "c__none", "b__[!b]oo"}
	worldArgs     = []string{
		`{}`, `{"path":"/etc/x"}`, `{"path":"/tmp/../etc/x"}`, `{"path":"/tmp/x"}`, `{"path":5}`, `{"path":["/etc/x","/tmp/x"]}`,
		`{"n":1}`, `{"n":5}`, `{"n":"x"}`, `{"n":5,"path":"/etc/x"}`, `{"n":1,"path":"/tmp/x"}`, `{"n":null,"path":null}`,
	}
	worldActions = []string{"", "allow", "notify", "ask", "manual", "deny"}
	worldRisks   = []string{"", "low", "medium", "high", "critical"}
)

// worldConditions are conditions with their meaning, told a second time in
// plain Go over the call.
var worldConditions = []struct {
	json string
	mean func(c Call) truth
}{
	{``, func(Call) truth { return yes }},
	{`"args.n > 3"`, naiveN},
	{`"!(args.n > 3)"`, func(c Call) truth {
		return map[truth]truth{yes: no, no: yes, undecided: undecided}[naiveN(c)]
	}},
	{`[{"param":"path","matches":"^/etc/"}]`, naivePath},
	{`"'private' in flow.content && 'external' in labels"`, func(c Call) truth {
		found, to := naiveLabel("private", c.Flow.Content...), naiveLabel("external", FlowFact{Labels: c.Flow.Labels})
		switch {
		case found == no || to == no:
			return no
		case found == undecided || to == undecided:
			return undecided
		}
		return yes
	}},
	{`"'hr' in flow.context && !flow.written || args.n > 3"`, func(c Call) truth {
		read := naiveLabel("hr", c.Flow.Context...)
		if c.Flow.Written {
			read = no
		}
		switch n := naiveN(c); {
		case read == yes || n == yes:
			return yes
		case read == undecided || n == undecided:
			return undecided
		}
		return no
	}},
	{`[{"param":"path","matches":"^/etc/"},{"param":"n","matches":"^x$"}]`, func(c Call) truth {
		n, ok := c.Args["n"].(string)
		x := undecided
		if ok && n == "x" {
			x = yes
		} else if ok {
			x = no
		}
		p := naivePath(c)
		if p == no || x == no {
			return no
		}
		if p == yes && x == yes {
			return yes
		}
		return undecided
	}},
	{`"has(args.n) || args.path == '/etc/x'"`, func(c Call) truth {
		if _, ok := c.Args["n"]; ok {
			return yes
		}
		if _, ok := c.Args["path"]; !ok {
			return undecided
		}
		if c.Args["path"] == "/etc/x" {
			return yes
		}
		return no
	}},
}

// naiveLabel says whether an expression finds a label among those of facts: it must know
// all of them.
func naiveLabel(label string, facts ...FlowFact) truth {
	has := no
	for _, f := range facts {
		if f.Undecided || f.Labels.Unknown {
			return undecided
		}
		if slices.Contains(f.Labels.Has, label) {
			has = yes
		}
	}
	return has
}

func naiveN(c Call) truth {
	n, ok := c.Args["n"].(json.Number)
	if !ok {
		return undecided
	}
	if n == "5" {
		return yes
	}
	return no
}

func naivePath(c Call) truth {
	switch p := c.Args["path"].(type) {
	case string:
		return map[string]truth{"/etc/x": yes, "/tmp/x": no, "/tmp/../etc/x": undecided}[p]
	case []any:
		return undecided // the only one there is holds one of each
	}
	return undecided
}

type worldRule struct {
	tools         []string
	condition     int
	action, risk  string
	repeatable    *bool
	timeout       int // seconds; 0: not set
	remember      *bool
	requireReason *bool
	quorum        int
	observed      bool
}

func (r worldRule) asks() bool { return r.action == "" || r.action == "ask" || r.action == "manual" }

func (r worldRule) json() string {
	keys := []string{fmt.Sprintf(`"tools": %s`, mustJSON(r.tools))}
	if w := worldConditions[r.condition].json; w != "" {
		keys = append(keys, `"when": `+w)
	}
	if r.action != "" {
		keys = append(keys, fmt.Sprintf(`"action": %q`, r.action))
	}
	if r.risk != "" {
		keys = append(keys, fmt.Sprintf(`"risk": %q`, r.risk))
	}
	if r.repeatable != nil {
		keys = append(keys, fmt.Sprintf(`"repeatable": %t`, *r.repeatable))
	}
	if r.timeout != 0 {
		keys = append(keys, fmt.Sprintf(`"timeout": "%ds"`, r.timeout))
	}
	if r.remember != nil {
		keys = append(keys, fmt.Sprintf(`"remember": %t`, *r.remember))
	}
	if r.requireReason != nil {
		keys = append(keys, fmt.Sprintf(`"requireReason": %t`, *r.requireReason))
	}
	if r.quorum != 0 {
		keys = append(keys, fmt.Sprintf(`"quorum": {"need": %d}`, r.quorum))
	}
	if r.observed {
		keys = append(keys, `"observe": true`)
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

type worldProfile struct {
	deny, ask, allow []string // allow nil: no allowlist
	byDefault        string   // "": not set
	fallback         string
	rules            []worldRule
	flows            []worldFlow
	extends          string
	observes         []string // names of lists, or "all"
}

type worldFlow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Action string `json:"action"`
	By     string `json:"by"`
	// Observed is last, so that a flow without it can be written shortly.
	Observed bool `json:"observe,omitempty"`
}

var worldLabels = []string{"private", "untrusted", "external", "hr"}

func drawFlow(t *rapid.T) worldFlow {
	label := rapid.SampledFrom(worldLabels)
	return worldFlow{label.Draw(t, "from"), label.Draw(t, "to"), rapid.SampledFrom([]string{"ask", "deny"}).Draw(t, "does"), rapid.SampledFrom([]string{"content", "context"}).Draw(t, "by"), false}
}

func drawLabels(t *rapid.T) Labels {
	return Labels{Has: rapid.SliceOfN(rapid.SampledFrom(worldLabels), 0, 2).Draw(t, "labels"), Unknown: rapid.IntRange(0, 5).Draw(t, "unlabelled") == 0}
}

func drawFacts(t *rapid.T) (all []FlowFact) {
	for range rapid.IntRange(0, 2).Draw(t, "facts") {
		all = append(all, FlowFact{drawLabels(t), "something", rapid.IntRange(0, 5).Draw(t, "lost") == 0})
	}
	return all
}

// naiveFlows says what the flows of a profile ask for: of every label that a source may have, and
// the tool may have, what is written about the two.
func naiveFlows(flows []worldFlow, f *FlowFacts) (said []Disposition) {
	may := func(l Labels) []string {
		all := slices.Clone(l.Has)
		if l.Unknown {
			all = append(all, "private", "untrusted", "external")
		}
		return all
	}
	for by, facts := range map[string][]FlowFact{"content": f.Content, "context": f.Context} {
		for _, fact := range facts {
			for _, from := range may(fact.Labels) {
				for _, to := range may(f.Labels) {
					if slices.Contains(flows, worldFlow{from, to, "deny", by, false}) {
						said = append(said, Deny)
					}
					if slices.Contains(flows, worldFlow{from, to, "ask", by, false}) {
						said = append(said, Ask)
					}
				}
			}
		}
	}
	return said
}

func (p worldProfile) json() string {
	var keys []string
	for key, list := range map[string][]string{"denylist": p.deny, "asklist": p.ask, "allowlist": p.allow} {
		if list != nil {
			keys = append(keys, fmt.Sprintf("%q: %s", key, mustJSON(list)))
		}
	}
	for key, word := range map[string]string{"default": p.byDefault, "elicitationFallback": p.fallback, "extends": p.extends} {
		if word != "" {
			keys = append(keys, fmt.Sprintf("%q: %q", key, word))
		}
	}
	var rules []string
	for _, r := range p.rules {
		rules = append(rules, r.json())
	}
	if p.flows != nil {
		keys = append(keys, fmt.Sprintf(`"flows": %s`, mustJSON(p.flows)))
	}
	if slices.Contains(p.observes, "all") {
		keys = append(keys, `"observe": true`)
	} else if p.observes != nil {
		keys = append(keys, `"observe": `+mustJSON(p.observes))
	}
	keys = append(keys, `"rules": [`+strings.Join(rules, ", ")+`]`)
	return "{" + strings.Join(keys, ", ") + "}"
}

type world struct {
	enabled  bool
	profiles map[string]worldProfile
}

func (w world) json() string {
	var all []string
	for _, name := range sortedKeys(w.profiles) {
		all = append(all, fmt.Sprintf("%q: %s", name, w.profiles[name].json()))
	}
	return fmt.Sprintf(`{"enabled": %t, "profiles": {%s}}`, w.enabled, strings.Join(all, ", "))
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func drawRule(t *rapid.T, actions []string) worldRule {
	r := worldRule{
		tools:     rapid.SliceOfN(rapid.SampledFrom(worldPatterns), 1, 2).Draw(t, "tools"),
		condition: rapid.IntRange(0, len(worldConditions)-1).Draw(t, "condition"),
		action:    rapid.SampledFrom(actions).Draw(t, "action"),
		risk:      rapid.SampledFrom(worldRisks).Draw(t, "risk"),
	}
	maybe := rapid.SampledFrom([]*bool{nil, nil, yesPtr(), noPtr()})
	r.repeatable = maybe.Draw(t, "repeatable")
	if r.asks() {
		r.timeout = rapid.SampledFrom([]int{0, 0, 30, 900}).Draw(t, "timeout")
		r.requireReason = maybe.Draw(t, "requireReason")
		r.quorum = rapid.SampledFrom([]int{0, 0, 0, 2, 3}).Draw(t, "quorum")
		if r.action != "manual" {
			r.remember = maybe.Draw(t, "remember")
		}
	}
	if r.action == "" && r.risk == "" {
		r.risk = "medium"
	}
	return r
}

func drawProfile(t *rapid.T, parent *worldProfile, parentName string) worldProfile {
	list := rapid.SliceOfN(rapid.SampledFrom(worldPatterns[1:]), 0, 2)
	p := worldProfile{extends: parentName, deny: list.Draw(t, "deny"), ask: list.Draw(t, "ask")}
	if rapid.IntRange(0, 2).Draw(t, "listed") == 0 {
		p.allow = list.Draw(t, "allow")
	}
	defaults, fallbacks := []string{"", "allow", "risk", "ask", "deny"}, []string{"", "deny", "queue", "allow"}
	if parent != nil { // a looser one than inherited is refused
		defaults = append([]string{""}, defaults[max(1, slices.Index(defaults, parent.byDefault)):]...)
		if parent.fallback == "deny" || parent.fallback == "queue" {
			fallbacks = fallbacks[:3]
		}
	}
	p.byDefault = rapid.SampledFrom(defaults).Draw(t, "default")
	p.fallback = rapid.SampledFrom(fallbacks).Draw(t, "fallback")
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		p.rules = append(p.rules, drawRule(t, worldActions))
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "flows") {
		p.flows = append(p.flows, drawFlow(t))
	}
	return p
}

func drawWorld(t *rapid.T) world {
	w := world{enabled: rapid.IntRange(0, 4).Draw(t, "enabled") > 0, profiles: map[string]worldProfile{}}
	top := drawProfile(t, nil, "")
	child := drawProfile(t, &top, "top")
	w.profiles["top"], w.profiles["child"] = top, child
	return w
}

// drawTrial makes a world with something in it that is only observed.
func drawTrial(t *rapid.T) world {
	w := drawWorld(t)
	for _, name := range []string{"top", "child"} {
		w.profiles[name] = drawObserve(t, w.profiles[name])
	}
	return w
}

func drawObserve(t *rapid.T, p worldProfile) worldProfile {
	p.observes, p.rules, p.flows = nil, slices.Clone(p.rules), slices.Clone(p.flows)
	seldom := rapid.SampledFrom([]bool{false, false, true})
	switch rapid.IntRange(0, 5).Draw(t, "observes") {
	case 0:
		p.observes = []string{"all"}
	case 1, 2:
		for _, name := range observable {
			if rapid.Bool().Draw(t, name) {
				p.observes = append(p.observes, name)
			}
		}
	}
	for i := range p.rules {
		p.rules[i].observed = seldom.Draw(t, "observed")
	}
	for i := range p.flows {
		p.flows[i].Observed = seldom.Draw(t, "observed")
	}
	return p
}

// onTrial returns the world as if what is observed were enforced, or as if it were not there.
func (w world) onTrial(there bool) world {
	all := map[string]worldProfile{}
	for name, p := range w.profiles {
		observed := func(list string) bool {
			return !there && (slices.Contains(p.observes, "all") || slices.Contains(p.observes, list))
		}
		q := worldProfile{extends: p.extends, fallback: p.fallback, deny: p.deny, ask: p.ask, allow: p.allow, byDefault: p.byDefault}
		if observed("denylist") {
			q.deny = nil
		}
		if observed("asklist") {
			q.ask = nil
		}
		if observed("allowlist") {
			q.allow = nil
		}
		if observed("default") {
			q.byDefault = ""
		}
		for _, r := range p.rules {
			if there || !r.observed && !observed("all") {
				r.observed = false
				q.rules = append(q.rules, r)
			}
		}
		for _, f := range p.flows {
			if there || !f.Observed && !observed("all") {
				f.Observed = false
				q.flows = append(q.flows, f)
			}
		}
		all[name] = q
	}
	return world{w.enabled, all}
}

// naiveAction is what comes of a call, as the action of a rule.
func naiveAction(d Decision) Action {
	switch {
	case d.Disposition == Ask && d.Manual:
		return ActionManual
	case d.Disposition == Allow && d.Notify:
		return ActionNotify
	}
	return map[Disposition]Action{Allow: ActionAllow, Ask: ActionAsk, Deny: ActionDeny}[d.Disposition]
}

// naiveTrial decides by what is enforced, and then by all that there is.
func naiveTrial(w world, name string, c Call) Decision {
	d := naive(w.onTrial(false), name, c)
	if would := naiveAction(naive(w.onTrial(true), name, c)); would != naiveAction(d) {
		d.Would = would
	}
	return d
}

func drawCall(t *rapid.T, tb testing.TB) Call {
	c := call(tb, rapid.SampledFrom(worldTools).Draw(t, "tool"), rapid.SampledFrom(worldArgs).Draw(t, "args"))
	c.Description = rapid.SampledFrom([]string{"", "Reads.", "Deletes it."}).Draw(t, "description")
	hint := rapid.SampledFrom([]*bool{nil, yesPtr(), noPtr()})
	c.Annotations = Annotations{ReadOnly: hint.Draw(t, "readOnly"), Destructive: hint.Draw(t, "destructive"),
		Idempotent: hint.Draw(t, "idempotent"), OpenWorld: hint.Draw(t, "openWorld")}
	c.TrustAnnotations = rapid.Bool().Draw(t, "trust")
	c.Flow = &FlowFacts{Labels: drawLabels(t), Content: drawFacts(t), Context: drawFacts(t), Written: rapid.Bool().Draw(t, "written")}
	c.Changed = rapid.SampledFrom([]string{"", "", "", "changed since ann accepted it"}).Draw(t, "changed")
	return c
}

// strictness orders outcomes: allow, ask, manual, deny.
func strictness(d Decision) int {
	if d.Disposition == Ask && d.Manual {
		return 3
	}
	return map[Disposition]int{Allow: 1, Ask: 2, Deny: 4}[d.Disposition]
}

func worldSet(t *rapid.T, tb testing.TB, w world) *Set {
	s, problems := Parse(spec(tb, w.json()))
	if len(problems) > 0 {
		t.Fatalf("%s: %v", w.json(), problems)
	}
	return s
}

func worldProfileOf(t *rapid.T, tb testing.TB, w world, name string) *Profile {
	p, ok := worldSet(t, tb, w).Profile(name)
	if !ok {
		t.Fatalf("there is no profile %s", name)
	}
	return p
}

// naive decides a second time, from the written form and by no means as fast:
// it lists every statement that holds for the call and picks the strictest.
func naive(w world, name string, c Call) Decision {
	var chain []worldProfile // from the top
	for name != "" {
		chain = append([]worldProfile{w.profiles[name]}, chain...)
		name = w.profiles[name].extends
	}
	full := c.Path()
	var d Decision
	var said []Disposition
	listed, ruled, otherwise, fallback := false, false, "allow", "deny"
	var spoken, maybe []int
	risk := func(word string) int { return slices.Index(worldRisks, word) }
	type held struct {
		worldRule
		sure bool
	}
	var rules []held
	for _, p := range chain {
		for _, pattern := range p.deny {
			if naiveMatch(pattern, full) {
				said = append(said, Deny)
			}
		}
		for _, pattern := range p.ask {
			if naiveMatch(pattern, full) {
				said = append(said, Ask)
			}
		}
		for _, pattern := range p.allow {
			if naiveMatch(pattern, full) {
				said = append(said, Allow)
			}
		}
		listed = listed || p.allow != nil
		if p.byDefault != "" {
			otherwise = p.byDefault
		}
		if p.fallback != "" {
			fallback = p.fallback
		}
		for _, r := range p.rules {
			if !slices.ContainsFunc(r.tools, func(pattern string) bool { return naiveMatch(pattern, full) }) {
				continue
			}
			is := worldConditions[r.condition].mean(c)
			if is == no {
				continue
			}
			rules = append(rules, held{r, is == yes})
			if r.risk != "" && is == yes {
				ruled = true
				spoken = append(spoken, risk(r.risk))
			} else if r.risk != "" {
				maybe = append(maybe, risk(r.risk))
			}
			switch {
			case r.action == "deny":
				said = append(said, Deny)
			case r.action == "manual":
				said = append(said, Ask)
				d.Manual = true
			case r.action == "ask":
				said = append(said, Ask)
			case r.action == "notify" && is == yes:
				said = append(said, Allow)
				d.Notify = true
			case r.action == "allow" && is == yes:
				said = append(said, Allow)
			}
		}
	}
	told := func(hint *bool) bool { return hint != nil && *hint }
	d.ReadOnly = c.Server == "" || (strings.Contains(c.Tool, "get") || c.TrustAnnotations && told(c.Annotations.ReadOnly)) && !told(c.Annotations.Destructive) &&
		!told(c.Annotations.OpenWorld) && !strings.Contains(c.Tool, "delete") && !strings.Contains(c.Description, "Deletes")
	d.Repeatable = c.Server == "" || c.TrustAnnotations && (told(c.Annotations.ReadOnly) || told(c.Annotations.Idempotent))
	for _, r := range rules {
		d.Repeatable = d.Repeatable || r.sure && told(r.repeatable)
	}
	for _, r := range rules {
		d.Repeatable = d.Repeatable && (r.repeatable == nil || *r.repeatable)
	}
	d.Repeatable = d.Repeatable && c.Changed == ""
	if c.Server != "" {
		if c.Annotations.Destructive != nil && *c.Annotations.Destructive {
			spoken = append(spoken, 3)
		}
		if !ruled && c.Annotations.OpenWorld != nil && *c.Annotations.OpenWorld {
			spoken = append(spoken, 2)
		}
		if !ruled && (strings.Contains(c.Tool, "delete") || strings.Contains(c.Description, "Deletes")) {
			spoken = append(spoken, 3)
		}
	}
	if !ruled {
		switch {
		case c.Server == "", strings.Contains(c.Tool, "get"), c.TrustAnnotations && c.Annotations.ReadOnly != nil && *c.Annotations.ReadOnly:
			spoken = append(spoken, 1)
		default:
			spoken = append(spoken, 3)
		}
	}
	d.Risk = Risk(slices.Max(append(spoken, maybe...)))
	if len(said) == 0 {
		switch {
		case listed, otherwise == "deny":
			said = append(said, Deny)
		case otherwise == "ask", otherwise == "risk" && d.Risk > Low:
			said = append(said, Ask)
		default:
			said = append(said, Allow)
		}
	}
	carried := false
	for _, p := range chain {
		content := slices.DeleteFunc(slices.Clone(p.flows), func(f worldFlow) bool { return f.By != "content" })
		carried = carried || slices.Contains(naiveFlows(content, c.Flow), Ask)
		context := slices.DeleteFunc(slices.Clone(p.flows), func(f worldFlow) bool { return f.By != "context" })
		d.Context = d.Context || slices.Contains(naiveFlows(context, c.Flow), Ask)
		said = append(said, naiveFlows(p.flows, c.Flow)...)
	}
	for _, r := range rules {
		reads := strings.Contains(worldConditions[r.condition].json, "flow.context") && len(c.Flow.Context) > 0
		d.Context = d.Context || (r.action == "ask" || r.action == "manual") && reads
	}
	d.Disposition = slices.Max(said)
	if c.Changed != "" && d.Disposition == Allow {
		d.Disposition = Ask
	}
	if !w.enabled {
		d.GateDisabled = true
		if d.Disposition == Ask {
			d.Disposition = Allow
		}
	}
	if d.Disposition != Ask {
		d.Manual, d.Context = false, false
		return d
	}
	d.Timeout, d.Remember, d.RequireReason = 300*time.Second, d.Risk <= Medium, d.Risk == Critical
	first := true
	tell := func(to *bool, said func(held) *bool, strict bool) {
		for _, loose := range []bool{true, false} { // the strict ones last, so that they stay
			for _, r := range rules {
				if v := said(r); v != nil && (*v != strict) == loose && (!loose || r.sure) {
					*to = *v
				}
			}
		}
	}
	for _, r := range rules {
		if r.timeout != 0 && (first || time.Duration(r.timeout)*time.Second < d.Timeout) {
			d.Timeout, d.TimeoutExplicit, first = time.Duration(r.timeout)*time.Second, true, false
		}
		if q := (Quorum{Need: r.quorum}); r.quorum != 0 && !slices.ContainsFunc(d.Quorums, func(o Quorum) bool { return o.Need == q.Need }) {
			d.Quorums = append(d.Quorums, q)
		}
	}
	slices.SortFunc(d.Quorums, func(a, b Quorum) int { return b.Need - a.Need })
	tell(&d.Remember, func(r held) *bool { return r.remember }, false)
	tell(&d.RequireReason, func(r held) *bool { return r.requireReason }, true)
	if d.Manual || d.RequireReason || len(d.Quorums) > 0 || carried {
		d.Remember = false
	}
	switch {
	case fallback == "queue":
		d.Fallback = FallbackQueue
	case fallback == "allow" && d.Risk != Critical && !d.Manual && len(d.Quorums) == 0:
		d.Fallback = FallbackAllow
	}
	return d
}

// Make soak has this play a million calls.
func TestAgainstTheNaiveEvaluator(t *testing.T) {
	outcomes, wouldBe, all := map[Disposition]int{}, map[Action]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := drawTrial(rt)
		s := worldSet(rt, t, w)
		for range 8 {
			c := drawCall(rt, t)
			for name := range w.profiles {
				p, _ := s.Profile(name)
				got, want := p.Decide(c), naiveTrial(w, name, c)
				outcomes[want.Disposition]++
				wouldBe[want.Would]++
				all++
				if diff := cmp.Diff(want, got, dutiesOnly); diff != "" {
					rt.Fatalf("%s\nprofile %s, call %s(%v) (-want +got)\n%s\nbecause %v", w.json(), name, c.Path(), c.Args, diff, got.Reasons)
				}
				if (got.Would == 0) != (len(got.Observed) == 0) || (got.Would == 0) != (len(got.WouldSay()) == 0) {
					rt.Fatalf("%s\nprofile %s, call %s(%v): would %s, because %v", w.json(), name, c.Path(), c.Args, got.Would, got.Observed)
				}
				if got.Disposition != Deny && !p.Sees(c.Server, c.Tool) {
					rt.Fatalf("%s\nprofile %s does not see %s, which it does not deny", w.json(), name, c.Path())
				}
			}
		}
	})
	for _, d := range []Disposition{Allow, Ask, Deny} {
		if outcomes[d]*20 < all { // some 300 with -short, 1,600 without
			t.Errorf("the generator is lame: %v", outcomes)
		}
	}
	for _, would := range []Action{ActionAllow, ActionAsk, ActionManual, ActionDeny} {
		if wouldBe[would] == 0 && all > 10_000 { // few worlds have none of some, by chance
			t.Errorf("the generator is lame: of what is observed, none would %s: %v", would, wouldBe)
		}
	}
	t.Logf("%d calls: %v; %v", all, outcomes, wouldBe)
}

// What is only observed changes nothing: not what comes of a call, nor why, nor what a
// script sees of it.
func TestLawObservingChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawTrial(rt), drawCall(rt, t)
		for name := range w.profiles {
			with, without := worldProfileOf(rt, t, w, name), worldProfileOf(rt, t, w.onTrial(false), name)
			a, b := with.Decide(c), without.Decide(c)
			a.Revision, a.Grounds, a.Would, a.Observed = b.Revision, b.Grounds, 0, nil
			for i := range a.Reasons { // rules are numbered without those that are not there
				a.Reasons[i].Rule = ""
			}
			for i := range b.Reasons {
				b.Reasons[i].Rule = ""
			}
			less := cmpopts.SortSlices(func(a, b Reason) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
			if diff := cmp.Diff(b, a, less); diff != "" || with.Sees(c.Server, c.Tool) != without.Sees(c.Server, c.Tool) {
				rt.Fatalf("%s\nprofile %s, call %s(%v):\n%s", w.json(), name, c.Path(), c.Args, diff)
			}
		}
		if before, after := worldSet(rt, t, w.onTrial(false)), worldSet(rt, t, w); len(Looser(before, after)) > 0 {
			rt.Fatalf("%s\nis looser than without what it observes: %q", w.json(), Looser(before, after))
		}
	})
}

// P3: the same facts give the same decision, and the order of rules, of
// lists and of the file has no part in it.
func TestLawOrderHasNoMeaning(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawTrial(rt)
		shuffled := world{enabled: w.enabled, profiles: map[string]worldProfile{}}
		for name, p := range w.profiles {
			p.rules = rapid.Permutation(p.rules).Draw(rt, "rules")
			p.deny = rapid.Permutation(p.deny).Draw(rt, "deny")
			p.ask = rapid.Permutation(p.ask).Draw(rt, "ask")
			p.flows = rapid.Permutation(p.flows).Draw(rt, "flows")
			shuffled.profiles[name] = p
		}
		c := drawCall(rt, t)
		one, again, other := worldProfileOf(rt, t, w, "child"), worldProfileOf(rt, t, w, "child"), worldProfileOf(rt, t, shuffled, "child")
		a, b, o := one.Decide(c), again.Decide(c), other.Decide(c)
		if diff := cmp.Diff(a, b); diff != "" {
			rt.Fatalf("not a pure function:\n%s", diff)
		}
		if diff := cmp.Diff(a, one.Explain(c).Decision); diff != "" {
			rt.Fatalf("explained is another decision:\n%s", diff)
		}
		strip := func(d Decision) Decision {
			d.Revision, d.Grounds = "", ""
			var reasons []string
			for _, r := range d.Reasons {
				r.Rule, r.Pattern = "", ""
				reasons = append(reasons, fmt.Sprint(r))
			}
			slices.Sort(reasons)
			d.Reasons = []Reason{{Detail: strings.Join(reasons, "\n")}}
			reasons = nil
			for _, r := range d.Observed {
				r.Rule, r.Pattern = "", ""
				reasons = append(reasons, fmt.Sprint(r))
			}
			slices.Sort(reasons)
			d.Observed = []Reason{{Detail: strings.Join(reasons, "\n")}}
			return d
		}
		if diff := cmp.Diff(strip(a), strip(o)); diff != "" {
			rt.Fatalf("%s\n%s\ndiffer:\n%s", w.json(), shuffled.json(), diff)
		}
	})
}

// A denial by name wins over everything that can be added.
func TestLawDenyWins(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawWorld(rt), drawCall(rt, t)
		p := w.profiles["top"]
		if rapid.Bool().Draw(rt, "by rule") {
			p.rules = append(slices.Clone(p.rules), worldRule{tools: []string{c.Path()}, action: "deny"})
		} else {
			p.deny = append(slices.Clone(p.deny), c.Path())
		}
		w.profiles["top"] = p
		for name := range w.profiles {
			if d := worldProfileOf(rt, t, w, name).Decide(c); d.Disposition != Deny {
				rt.Fatalf("%s\nprofile %s, call %s: %s", w.json(), name, c.Path(), d.Disposition)
			}
		}
	})
}

// Adding a deny or ask entry makes no call pass that did not, and loosens no
// denial by name. (A call that was denied only because nothing named it may be
// asked by the new entry: C13.)
func TestLawAddingDenyOrAskNeverLoosens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawWorld(rt), drawCall(rt, t)
		before := worldProfileOf(rt, t, w, "child").Decide(c)
		name := rapid.SampledFrom([]string{"top", "child"}).Draw(rt, "where")
		p := w.profiles[name]
		switch rapid.IntRange(0, 3).Draw(rt, "what") {
		case 3:
			p.flows = append(slices.Clone(p.flows), drawFlow(rt))
		case 0:
			r := drawRule(rt, []string{"ask", "manual", "deny"})
			p.rules = append(slices.Clone(p.rules), r)
		case 1:
			p.deny = append(slices.Clone(p.deny), rapid.SampledFrom(worldPatterns).Draw(rt, "pattern"))
		case 2:
			p.ask = append(slices.Clone(p.ask), rapid.SampledFrom(worldPatterns).Draw(rt, "pattern"))
		}
		w.profiles[name] = p
		after := worldProfileOf(rt, t, w, "child").Decide(c)
		if strictness(after) >= strictness(before) {
			return
		}
		unnamed := before.Because().Kind == KindNotListed || before.Because().Kind == KindDefault
		if unnamed && (after.Disposition == Ask || after.Disposition == Allow && after.GateDisabled) {
			return
		}
		rt.Fatalf("%s\ncall %s(%v): %s became %s", w.json(), c.Path(), c.Args, pretty(before), pretty(after))
	})
}

// A child is never looser than its parent, except where its own allowlist or
// allow rules name the call and the parent denied it for want of a name.
func TestLawExtendsNeverWeakens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawWorld(rt), drawCall(rt, t)
		s := worldSet(rt, t, w)
		top, _ := s.Profile("top")
		child, _ := s.Profile("child")
		up, down := top.Decide(c), child.Decide(c)
		if strictness(down) >= strictness(up) {
			return
		}
		named := slices.ContainsFunc(down.Reasons, func(r Reason) bool {
			return r.Profile == "child" && (r.Kind == KindAllowlist || r.Kind == KindAsklist || r.Kind == KindRule)
		})
		unnamed := up.Because().Kind == KindNotListed || up.Because().Kind == KindDefault || up.Because().Kind == KindChanged
		if named && unnamed {
			return
		}
		rt.Fatalf("%s\ncall %s(%v): the parent says %s, the child %s", w.json(), c.Path(), c.Args, pretty(up), pretty(down))
	})
}

// What cannot be decided never lets a call pass: with every condition
// replaced by one that has no answer, no call passes that needed one.
func TestLawUndecidedNeverPasses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawWorld(rt), drawCall(rt, t)
		c.Args = nil // no parameter at all and no label known: every condition but the empty one is undecided
		nobodyKnows := []FlowFact{{Labels: Labels{Unknown: true}}}
		c.Flow = &FlowFacts{Labels: Labels{Unknown: true}, Content: nobodyKnows, Context: nobodyKnows}
		p := worldProfileOf(rt, t, w, "child")
		d := p.Decide(c)
		for _, r := range d.Reasons {
			if r.Undecided && r.Disposition == Allow {
				rt.Fatalf("%s\na condition without an answer lets pass: %s", w.json(), pretty(d))
			}
		}
		for _, set := range w.profiles {
			for _, r := range set.rules {
				applies := slices.ContainsFunc(r.tools, func(pattern string) bool { return naiveMatch(pattern, c.Path()) })
				if !applies || r.condition == 0 || !w.enabled {
					continue
				}
				if r.action == "deny" && d.Disposition != Deny || (r.action == "ask" || r.action == "manual") && d.Disposition == Allow {
					rt.Fatalf("%s\nrule %s has no answer for %s, and the call is %s", w.json(), r.json(), c.Path(), d.Disposition)
				}
			}
		}
	})
}

// M21: whatever an upstream says of itself, no decision gets looser by it.
func TestLawAnnotationsNeverLoosen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, c := drawWorld(rt), drawCall(rt, t)
		c.TrustAnnotations = false
		silent := c
		silent.Annotations, silent.Title, silent.Description = Annotations{}, "", ""
		p := worldProfileOf(rt, t, w, "child")
		with, without := p.Decide(c), p.Decide(silent)
		if with.Risk < without.Risk || with.Repeatable && !without.Repeatable {
			rt.Fatalf("%s\nannotations lower the risk, or make the call repeatable: %s\n%s", w.json(), pretty(with), pretty(without))
		}
		if strictness(with) < strictness(without) {
			rt.Fatalf("%s\nannotations loosen: %s\n%s", w.json(), pretty(with), pretty(without))
		}
	})
}

// Stricter is what its name says, for any two policies.
func TestLawStricter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt, t)
		a := worldProfileOf(rt, t, drawTrial(rt), "child").Decide(c)
		b := worldProfileOf(rt, t, drawTrial(rt), "child").Decide(c)
		m, n := Stricter(a, b), Stricter(b, a)
		if strictness(m) != max(strictness(a), strictness(b)) || m.Risk != max(a.Risk, b.Risk) || m.Repeatable != (a.Repeatable && b.Repeatable) {
			rt.Fatalf("stricter of %s and %s is %s", pretty(a), pretty(b), pretty(m))
		}
		would := func(d Decision) Action { return stdcmp.Or(d.Would, naiveAction(d)) }
		if would(m) != max(would(a), would(b)) || (m.Would == 0) != (len(m.Observed) == 0) || m.Would == naiveAction(m) {
			rt.Fatalf("stricter of %s and %s would be %s", pretty(a), pretty(b), pretty(m))
		}
		if diff := cmp.Diff(m, n, dutiesOnly); diff != "" {
			rt.Fatalf("the order counts:\n%s", diff)
		}
		if same := Stricter(a, a); strictness(same) != strictness(a) || same.Timeout != a.Timeout || len(same.Reasons) != len(a.Reasons) {
			rt.Fatalf("not idempotent: %s\n%s", pretty(a), pretty(same))
		}
	})
}
