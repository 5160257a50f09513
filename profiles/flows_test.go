package profiles

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// flowing gives a call its facts about flows.
func flowing(f FlowFacts) func(*Call) { return func(c *Call) { c.Flow = &f } }

func has(labels ...string) Labels { return Labels{Has: labels} }

func TestFlows(t *testing.T) {
	p := profile(t, `{"flows": [
		{"from": "private", "to": "external", "action": "ask", "by": "content", "reason": "it is ours"},
		{"from": "untrusted", "to": "external", "action": "ask", "by": "context"},
		{"from": "hr", "to": "external", "action": "deny", "by": "content"}]}`)
	salaries := FlowFact{Labels: has("private"), Says: `312 characters of notes__read {path: "hr/salaries.md"}, line 4`}
	page := FlowFact{Labels: has("untrusted"), Says: "web__fetch was read"}
	decide(t, p,
		allow("mail__send", "{}", "default", flowing(FlowFacts{Labels: has("external")})),
		ask("mail__send", "{}", `private: 312 characters of notes__read {path: "hr/salaries.md"}, line 4, go to mail__send: it is ours`, flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{salaries}})),
		allow("mail__draft", "{}", "", flowing(FlowFacts{Labels: has(), Content: []FlowFact{salaries}})),
		allow("mail__send", "{}", "", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{page}, Context: []FlowFact{salaries}})),
		ask("mail__send", "{}", "untrusted: web__fetch was read before, and mail__send is external", flowing(FlowFacts{Labels: has("external"), Context: []FlowFact{page}})),
		deny("mail__send", "{}", "hr: ", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: has("private", "hr"), Says: "x"}}})),
		ask("mail__send", "{}", "private: ", flowing(FlowFacts{Labels: Labels{Unknown: true}, Content: []FlowFact{salaries}})),
		ask("mail__send", "{}", "private: ", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: Labels{Unknown: true}, Says: "x"}}})),
		ask("mail__send", "{}", "private: ", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: has("private"), Undecided: true, Says: "x"}}})),
		deny("mail__send", "{}", "nobody looked"),
	)
	d := p.Decide(with(call(t, "mail__send", "{}"), flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{salaries}})))
	if d.Remember {
		t.Error("a yes to what a call carries is remembered")
	}
	if content, context := p.Flows(); !content || !context {
		t.Error("the profile needs facts by content and by context")
	}
	listed := profile(t, `{"allowlist": ["a__*"], "flows": [{"from": "private", "to": "external", "action": "ask", "by": "content"}]}`)
	decide(t, listed, deny("mail__send", "{}", "not on the allowlist", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{salaries}})))
}

func with(c Call, change func(*Call)) Call { change(&c); return c }

func TestFlowsThatDoNotApplySayWhy(t *testing.T) {
	p := profile(t, `{"flows": [
		{"from": "private", "to": "external", "action": "ask", "by": "content"},
		{"from": "untrusted", "to": "external", "action": "ask", "by": "context"},
		{"from": "private", "to": "hr", "action": "ask", "by": "content"}]}`)
	var says []string
	for _, trial := range p.Explain(with(call(t, "mail__send", "{}"), flowing(FlowFacts{Labels: has("external")}))).Tried {
		if trial.Kind == KindFlow {
			says = append(says, trial.Outcome)
		}
	}
	want := []string{"nothing labelled private was found in the arguments", "nothing labelled untrusted was read before", "the tool is not labelled hr"}
	if !slices.Equal(says, want) {
		t.Errorf("%q", says)
	}
}

func TestFlowsInExpressions(t *testing.T) {
	p := profile(t, `{"rules": [{"tools": ["*"], "when": "'private' in flow.content && 'external' in labels && !args.to.endsWith('@acme.com')", "action": "ask"}]}`)
	private := FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: has("private")}}}
	decide(t, p,
		ask("mail__send", `{"to": "eve@x.org"}`, "rule", flowing(private)),
		allow("mail__send", `{"to": "ann@acme.com"}`, "", flowing(private)),
		allow("mail__send", `{"to": "eve@x.org"}`, "", flowing(FlowFacts{Labels: has("external")})),
		ask("mail__send", `{"to": "eve@x.org"}`, "could not be decided", flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: Labels{Unknown: true}}}})),
		ask("mail__send", `{"to": "eve@x.org"}`, "could not be decided", flowing(FlowFacts{Labels: Labels{Unknown: true}, Content: private.Content})),
		ask("mail__send", `{"to": "eve@x.org"}`, "could not be decided"),
	)
	if content, context := p.Flows(); !content || context {
		t.Errorf("the profile needs content %v, context %v", content, context)
	}
}

// Who is asked because of what was read before may have it forgotten: with a yes of their own, to a call that
// needs no more than that.
func TestAskedInContext(t *testing.T) {
	before := FlowFacts{Labels: has("external"), Context: []FlowFact{{Labels: has("private"), Says: "notes__read was read"}}, Content: []FlowFact{{Labels: has("private"), Says: "x"}}}
	nothing := FlowFacts{Labels: has("external")}
	for _, row := range []struct {
		name, profile  string
		facts          FlowFacts
		context, mayBe bool
	}{
		{"a flow", `{"flows": [{"from": "private", "to": "external", "action": "ask", "by": "context"}]}`, before, true, true},
		{"a flow by content", `{"flows": [{"from": "private", "to": "external", "action": "ask", "by": "content"}]}`, before, false, false},
		{"a rule", `{"rules": [{"tools": ["*"], "when": "'private' in flow.context", "action": "ask"}]}`, before, true, true},
		{"a rule, with another condition", `{"rules": [{"tools": ["*"], "effects": ["send"], "when": "'private' in flow.context", "action": "ask"}]}`, before, true, true},
		{"a rule that does not apply", `{"asklist": ["*"], "rules": [{"tools": ["*"], "when": "'hr' in flow.context", "action": "ask"}]}`, before, false, false},
		{"a rule that is not for asking", `{"asklist": ["*"], "rules": [{"tools": ["*"], "when": "'private' in flow.context", "risk": "high"}]}`, before, false, false},
		{"a rule that checks it", `{"rules": [{"tools": ["*"], "action": "ask", "check": ["!('private' in flow.context)"]}]}`, before, false, false},
		{"nothing was read", `{"rules": [{"tools": ["*"], "when": "!('private' in flow.context)", "action": "ask"}]}`, nothing, false, false},
		{"a denied one", `{"denylist": ["*"], "flows": [{"from": "private", "to": "external", "action": "ask", "by": "context"}]}`, before, false, false},
		{"a typed name", `{"rules": [{"tools": ["*"], "when": "'private' in flow.context", "action": "manual"}]}`, before, true, false},
		{"a critical one", `{"rules": [{"tools": ["*"], "when": "'private' in flow.context", "action": "ask", "risk": "critical"}]}`, before, true, false},
		{"several people", `{"rules": [{"tools": ["*"], "when": "'private' in flow.context", "action": "ask", "quorum": {"need": 2}}]}`, before, true, false},
	} {
		d := profile(t, row.profile).Decide(with(call(t, "mail__send", "{}"), flowing(row.facts)))
		if d.Context != row.context || d.MayForget() != row.mayBe {
			t.Errorf("%s: %v, may be forgotten: %v", row.name, d.Context, d.MayForget())
		}
		if both := Stricter(d, Decision{Disposition: Ask, Risk: Low}); both.Context != row.context && d.Disposition == Ask {
			t.Errorf("%s, and another profile that asks: %v", row.name, both.Context)
		}
		if both := Stricter(Decision{Disposition: Deny}, d); both.Context {
			t.Errorf("%s, and another profile that denies", row.name)
		}
	}
}

func TestFlowMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`{"from": "a", "to": "b", "action": "ask"}`:                       `/profiles/p/flows/0: the flow has no "by"`,
		`{"from": "A b", "to": "b", "action": "ask", "by": "content"}`:    `/profiles/p/flows/0/from: no label: "A b"`,
		`{"from": "a", "to": "b", "action": "allow", "by": "content"}`:    `/profiles/p/flows/0/action: no action of a flow: "allow"`,
		`{"from": "a", "to": "b", "action": "ask", "by": "contents"}`:     `/profiles/p/flows/0/by: `,
		`{"to": "b", "action": "ask", "by": "content", "reason": "x"}`:    `/profiles/p/flows/0: the flow has no "from"`,
		`{"from":"a","to":"b","action":"ask","by":"content","reason":""}`: `/profiles/p/flows/0/reason: the reason is empty`,
	} {
		_, problems := Parse(spec(t, `{"profiles": {"p": {"flows": [`+text+`]}}}`))
		if len(problems) == 0 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

func TestFlowsAddUpAndLooser(t *testing.T) {
	const ask, deny = `{"from": "private", "to": "external", "action": "ask", "by": "content"}`, `{"from": "private", "to": "external", "action": "deny", "by": "content"}`
	in := func(flows ...string) *Set {
		return set(t, `{"profiles": {"p": {"flows": [`+strings.Join(flows, ", ")+`]}}}`)
	}
	for _, row := range []struct {
		before, after *Set
		looser        bool
	}{
		{in(ask), in(ask), false}, {in(ask), in(deny), false}, {in(), in(ask), false},
		{in(ask), in(), true}, {in(deny), in(ask), true},
		{in(ask), in(strings.Replace(ask, "content", "context", 1)), true},
	} {
		if got := Looser(row.before, row.after); len(got) > 0 != row.looser {
			t.Errorf("looser: %v, want %v", got, row.looser)
		}
	}
	s := set(t, `{"profiles": {"up": {"flows": [`+ask+`]}, "p": {"extends": "up", "flows": [`+deny+`]}}}`)
	p, _ := s.Profile("p")
	if e := p.Effective(); len(e.Flows) != 2 {
		t.Errorf("effective: %s", pretty(e.Flows))
	}
	text, err := json.Marshal(p.Explain(with(call(t, "mail__send", "{}"), flowing(FlowFacts{Labels: has("external")}))).Tried)
	if err != nil || !strings.Contains(string(text), "private to external by content") {
		t.Errorf("explained: %s", text)
	}
	if one, other := set(t, `{"profiles": {"p": {}}}`), in(ask); one.Revision() == other.Revision() || other.RestrictsNothing("p") {
		t.Error("flows are part of the policy")
	}
	if !slices.ContainsFunc(Looser(in(deny), in()), func(s string) bool { return strings.Contains(s, "flow from private to external by content (deny)") }) {
		t.Error("what is looser is not named")
	}
}
