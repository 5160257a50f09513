package profiles

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// would decides a call and returns the decision with the lines of what is only observed.
func would(t *testing.T, p *Profile, tool, args string, change ...func(*Call)) (Decision, string) {
	t.Helper()
	c := call(t, tool, args)
	for _, f := range change {
		f(&c)
	}
	d := p.Decide(c)
	return d, strings.Join(d.WouldSay(), "; ")
}

func TestObserve(t *testing.T) {
	private := flowing(FlowFacts{Labels: has("external"), Content: []FlowFact{{Labels: has("private"), Says: "a note"}}})
	for name, test := range map[string]struct {
		profile, tool, args string
		is                  Disposition
		would               Action
		says                string
		change              []func(*Call)
	}{
		"a rule": {`{"rules": [{"name": "big", "tools": ["a__*"], "when": "args.n > 3", "action": "ask", "reason": "it is much", "observe": true}]}`,
			"a__x", `{"n": 5}`, Allow, ActionAsk, "would ask: rule big (ask): it is much [profile p]", nil},
		"a rule that does not apply": {`{"rules": [{"tools": ["a__*"], "when": "args.n > 3", "action": "ask", "observe": true}]}`, "a__x", `{"n": 1}`, Allow, 0, "", nil},
		"a rule that cannot be decided": {`{"rules": [{"tools": ["a__*"], "when": "args.n > 3", "action": "ask", "observe": true}]}`,
			"a__x", `{}`, Allow, ActionAsk, "would ask: rule rules/0 (ask); its condition could not be decided: no such key: n [profile p]", nil},
		"not observed after all":   {`{"rules": [{"tools": ["a__*"], "action": "ask", "observe": false}]}`, "a__x", `{}`, Ask, 0, "", nil},
		"as strict as what counts": {`{"asklist": ["a__*"], "rules": [{"tools": ["*"], "action": "ask", "observe": true}]}`, "a__x", `{}`, Ask, 0, "", nil},
		"stricter than what counts": {`{"asklist": ["a__*"], "rules": [{"tools": ["*"], "action": "manual", "observe": true}, {"tools": ["*"], "action": "ask", "observe": true}]}`,
			"a__x", `{}`, Ask, ActionManual, "would manual: rule rules/0 (manual) [profile p]", nil},
		"two that differ": {`{"rules": [{"tools": ["*"], "action": "deny", "observe": true}, {"tools": ["*"], "action": "ask", "observe": true}]}`,
			"a__x", `{}`, Allow, ActionDeny, "would deny: rule rules/0 (deny) [profile p]; would ask: rule rules/1 (ask) [profile p]", nil},
		"an allow lets nothing pass": {`{"default": "ask", "rules": [{"tools": ["a__*"], "action": "allow", "observe": true}]}`,
			"a__x", `{}`, Ask, ActionAllow, "would allow: rule rules/0 (allow) [profile p]", nil},
		"an allow of what has changed": {`{"default": "deny", "rules": [{"tools": ["a__*"], "action": "allow", "observe": true}]}`,
			"a__x", `{}`, Deny, ActionAsk, "would ask: the tool is not as a person has last seen it; would ask: rule rules/0 (allow) [profile p]", []func(*Call){changed}},
		"a notice": {`{"rules": [{"tools": ["a__*"], "action": "notify", "observe": true}]}`, "a__x", `{}`, Allow, ActionNotify, "would notify: rule rules/0 (notify) [profile p]", nil},
		"a risk": {`{"default": "risk", "rules": [{"name": "grave", "tools": ["a__*"], "risk": "high", "observe": true}, {"tools": ["a__*"], "risk": "low"}]}`,
			"a__x", `{}`, Allow, ActionAsk, "would ask: rule grave [profile p]", nil},
		"a check": {`{"rules": [{"name": "small", "tools": ["a__*"], "check": ["args.n < 3"], "observe": true}]}`,
			"a__x", `{"n": 5}`, Allow, ActionDeny, "would deny: rule small: its check does not pass: args.n < 3 [profile p]", nil},
		"a flow": {`{"flows": [{"from": "private", "to": "external", "action": "ask", "by": "content", "observe": true}]}`,
			"mail__send", `{}`, Allow, ActionAsk, "would ask: flows/0: private: a note, go to mail__send [profile p]", []func(*Call){private}},
		"a list":             {`{"asklist": ["a__*"], "denylist": ["b__*"], "observe": ["asklist"]}`, "a__x", `{}`, Allow, ActionAsk, `would ask: asklist: "a__*" [profile p]`, nil},
		"another list":       {`{"asklist": ["a__*"], "denylist": ["b__*"], "observe": ["asklist"]}`, "b__x", `{}`, Deny, 0, "", nil},
		"the default":        {`{"default": "ask", "observe": ["default"]}`, "a__x", `{}`, Allow, ActionAsk, "would ask: default: ask [profile p]", nil},
		"an allowlist":       {`{"allowlist": ["a__*"], "observe": ["allowlist"]}`, "b__x", `{}`, Allow, ActionDeny, "would deny: not on the allowlist [profile p]", nil},
		"an empty allowlist": {`{"allowlist": [], "observe": ["allowlist"]}`, "b__x", `{}`, Allow, ActionDeny, "would deny: not on the allowlist [profile p]", nil},
		"a whole profile": {`{"default": "deny", "asklist": ["a__*"], "rules": [{"tools": ["a__*"], "action": "manual"}], "observe": true}`,
			"a__x", `{}`, Allow, ActionManual, `would manual: rule rules/0 (manual) [profile p]; would ask: asklist: "a__*" [profile p]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, says := would(t, profile(t, test.profile), test.tool, test.args, test.change...)
			if d.Disposition != test.is || d.Would != test.would || says != test.says {
				t.Errorf("%s, would %s: %q", d.Disposition, d.Would, says)
			}
			for _, line := range d.WouldSay() {
				if _, _, ok := CutWould(line); !ok {
					t.Errorf("%q is not understood", line)
				}
			}
		})
	}
	for _, line := range []string{"would be asked, but evaluation.enabled is false", "would frob: rule x", "rule x (ask)"} {
		if _, _, ok := CutWould(line); ok {
			t.Errorf("%q is understood", line)
		}
	}
}

func TestObserveAndExtends(t *testing.T) {
	s := set(t, `{"profiles": {
		"up": {"asklist": ["a__*"], "rules": [{"name": "later", "tools": ["b__*"], "action": "deny", "observe": true}]},
		"child": {"extends": "up", "denylist": ["c__*"], "default": "ask", "observe": true},
		"grandchild": {"extends": "child", "asklist": ["e__*"]}}}`)
	for _, name := range []string{"child", "grandchild"} {
		p, _ := s.Profile(name)
		for tool, want := range map[string]struct {
			is    Disposition
			would Action
		}{"a__x": {Ask, 0}, "b__x": {Allow, ActionDeny}, "c__x": {Allow, ActionDeny}, "d__x": {Allow, ActionAsk}} {
			if d, says := would(t, p, tool, `{}`); d.Disposition != want.is || d.Would != want.would {
				t.Errorf("%s, %s: %s, would %s: %q", name, tool, d.Disposition, d.Would, says)
			}
		}
	}
	if p, _ := s.Profile("grandchild"); p.Decide(call(t, "e__x", "{}")).Disposition != Ask {
		t.Error("what extends a profile that is observed is observed, too")
	}
}

// A template is nobody's guardrail: who observes a profile that extends one tries it.
func TestObserveTemplate(t *testing.T) {
	strict := spec(t, `{"profiles": {"t": {"default": "deny", "elicitationFallback": "deny", "limits": {"calls": 5}, "rules": [{"tools": ["a__*"], "action": "ask", "check": ["args.n < 3"], "hidden": ["pin"]}],
		"flows": [{"from": "private", "to": "external", "action": "ask", "by": "context"}]}}}`).Profiles["t"]
	o := Options{Builtins: map[string]*ProfileSpec{"t@1": strict}}
	s := set(t, `{"profiles": {"p": {"extends": "builtin:t@1", "observe": true}, "child": {"extends": "p", "observe": true}}}`, o)
	for _, name := range s.Names() {
		p, _ := s.Profile(name)
		for tool, want := range map[string]Action{"a__x": ActionAsk, "b__x": ActionDeny} {
			if d, says := would(t, p, tool, `{"n": 1}`, flowing(FlowFacts{Labels: has()})); d.Disposition != Allow || d.Would != want {
				t.Errorf("%s, %s: %s, would %s: %q", name, tool, d.Disposition, d.Would, says)
			}
		}
		if d, says := would(t, p, "a__x", `{"n": 5}`, flowing(FlowFacts{Labels: has()})); d.Would != ActionDeny || !strings.Contains(says, "its check does not pass: args.n < 3 [profile builtin:t@1]") {
			t.Errorf("%s: would %s: %q", name, d.Would, says)
		}
		if content, context := p.Flows(); content || !context {
			t.Errorf("%s: facts about flows: content %v, context %v", name, content, context)
		}
		if *p.Limits().Calls != 5 || p.Hidden() == nil || len(p.Checks(call(t, "a__x", `{"n": 5}`))) > 0 {
			t.Errorf("%s: limits and hidden values stay, checks do not", name)
		}
	}
	if enforced := set(t, `{"profiles": {"p": {"extends": "builtin:t@1"}}}`, o); len(Looser(enforced, s)) == 0 || len(Looser(s, enforced)) > 0 {
		t.Errorf("looser: %q, back: %q", Looser(enforced, s), Looser(s, enforced))
	}
}

// An argument that a rule hides is hidden while the rule is observed, in what people see
// and in records.
func TestObservedRulesHide(t *testing.T) {
	p := profile(t, `{"rules": [{"tools": ["a__*"], "action": "deny", "hidden": ["pin"], "display": {"maxString": 10}, "observe": true}]}`)
	d, _ := would(t, p, "a__x", `{"pin": "1234"}`)
	if _, hidden := d.Hidden["pin"]; d.Disposition != Allow || d.Would != ActionDeny || !hidden || d.Display.MaxString != 10 {
		t.Errorf("%s", pretty(d))
	}
	if e := p.Effective(); len(e.Rules) != 1 || e.Rules[0].Action != nil || len(e.Observed.Rules) != 1 {
		t.Errorf("effective: %s", pretty(e))
	}
}

func TestObserveMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`{"observe": ["rules"]}`:              `/profiles/p/observe/0: unknown name "rules", want one of allowlist, denylist, asklist, default (a rule or flow has its own "observe": true)`,
		`{"observe": ["asklst"]}`:             `/profiles/p/observe/0: unknown name "asklst", want one of allowlist, denylist, asklist, default (did you mean "asklist"?)`,
		`{"observe": ["asklist", "asklist"]}`: `/profiles/p/observe/1: asklist is named twice`,
	} {
		_, problems := Parse(spec(t, `{"profiles": {"p": `+text+`}}`))
		if len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
	for _, text := range []string{`"asklist"`, `{}`, `1`, `["asklist", 1]`} {
		if err := json.Unmarshal([]byte(text), new(Observe)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	for _, text := range []string{`true`, `false`, `[]`, `["asklist","default"]`} {
		var o Observe
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if back, err := json.Marshal(o); err != nil || string(back) != text {
			t.Errorf("%s is written %s: %v", text, back, err)
		}
	}
}

// What is put on trial or taken off again changes the policy, what people have approved
// stays approved, and only taking something out of force is looser.
func TestObserveIsAChange(t *testing.T) {
	in := func(p string) *Set { return set(t, `{"profiles": {"p": `+p+`}}`) }
	grounds := func(s *Set) string { return s.profiles["p"].grounds }
	plain := in(`{"denylist": ["b__*"]}`)
	for name, more := range map[string]string{
		"a rule":  `"rules": [{"tools": ["a__*"], "action": "deny", "observe": true}]`,
		"a flow":  `"flows": [{"from": "private", "to": "external", "action": "deny", "by": "content", "observe": true}]`,
		"a list":  `"asklist": ["a__*"], "observe": ["asklist"]`,
		"default": `"default": "deny", "observe": ["default"]`,
	} {
		trial, live := in(`{"denylist": ["b__*"], `+more+`}`), in(`{"denylist": ["b__*"], `+strings.NewReplacer(`, "observe": true`, ``, `, "observe": ["asklist"]`, ``, `, "observe": ["default"]`, ``).Replace(more)+`}`)
		if trial.Revision() == plain.Revision() || trial.Revision() == live.Revision() {
			t.Errorf("%s: it is no part of the policy", name)
		}
		if grounds(trial) != grounds(plain) || grounds(trial) == grounds(live) {
			t.Errorf("%s: an approval is lost, or outlives its end", name)
		}
		if len(Looser(plain, trial)) > 0 || len(Looser(trial, live)) > 0 || len(Looser(live, trial)) == 0 {
			t.Errorf("%s: %q, %q, %q", name, Looser(plain, trial), Looser(trial, live), Looser(live, trial))
		}
		kept, err := trial.Source()
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromSource(kept)
		if err != nil || again.Revision() != trial.Revision() || again.profiles["p"].shadow == nil {
			t.Errorf("%s: kept with a run, it is another policy: %v", name, err)
		}
	}
	if !in(`{"default": "deny", "observe": true}`).RestrictsNothing("p") {
		t.Error("a profile that only observes restricts something")
	}
}

func TestExplainWhatIsObserved(t *testing.T) {
	p := profile(t, `{"asklist": ["a__*"], "rules": [{"name": "no", "tools": ["a__*"], "action": "deny", "observe": true}]}`)
	var observed []string
	for _, trial := range p.Explain(call(t, "a__x", `{}`)).Tried {
		if trial.Observed {
			observed = append(observed, trial.Rule+": "+trial.Outcome)
		}
	}
	if !slices.Equal(observed, []string{"no: matches"}) {
		t.Errorf("%q", observed)
	}
}

func TestCheckWhatIsObserved(t *testing.T) {
	tools := []ToolFacts{{Server: "a", Tool: "x", Labels: has("private")}, {Server: "b", Tool: "x", Labels: has("external")}}
	for text, want := range map[string][]string{
		`{"asklist": ["a__*"], "observe": ["asklist", "denylist"]}`: {`/profiles/p/observe/1: the profile has no denylist of its own, so nothing is observed`},
		`{"observe": true}`: {`/profiles/p/observe: the profile says nothing itself, so nothing is observed (what it inherits from another profile of the configuration is observed where that one says so)`},
		`{"rules": [{"tools": ["a__*"], "remember": false, "observe": true}]}`: {`/profiles/p/rules/0/observe: the rule only says how people are asked, or what is hidden: observing it says nothing`},
		`{"asklist": ["a__*"], "rules": [{"tools": ["a__x"], "action": "ask", "when": "args.n > 1", "observe": true}]}`: {
			`/profiles/p/rules/0: what is enforced is as strict already, so observing it says nothing`},
		`{"asklist": ["a__*"], "rules": [{"tools": ["a__x"], "action": "deny", "observe": true}]}`:        nil,
		`{"denylist": ["a__*"], "asklist": ["a__x"], "observe": ["asklist"]}`:                             {`/profiles/p/asklist/0: shadowed: on every tool that it matches, "a__*" of the denylist is stricter`, `/profiles/p/asklist/0: what is enforced is as strict already, so observing it says nothing`},
		`{"asklist": ["zz__*"], "observe": true}`:                                                         {`/profiles/p/asklist/0: no known tool matches "zz__*"`},
		`{"flows": [{"from": "private", "to": "hr", "action": "ask", "by": "content", "observe": true}]}`: {`/profiles/p/flows/0/to: no known tool is labelled "hr", so the flow does nothing (servers have "labels", and their tools "tools": {"labels": ...})`},
		`{"flows": [{"from": "private", "to": "external", "action": "deny", "by": "content"}, {"from": "private", "to": "external", "action": "ask", "by": "content", "observe": true}]}`: {
			`/profiles/p/flows/1: what is enforced is as strict already, so observing it says nothing`},
	} {
		var got []string
		for _, w := range set(t, `{"profiles": {"p": `+text+`}}`).Check(tools) {
			got = append(got, w.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", text, got, want)
		}
	}
}
