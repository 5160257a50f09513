package profiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Bad input: each is refused with the place and a word that helps.
func TestProblems(t *testing.T) {
	rules := func(rule string) string { return `{"profiles": {"p": {"rules": [` + rule + `]}}}` }
	const rule0 = "/profiles/p/rules/0"
	for _, test := range []struct {
		section, path, message string
		offset                 int
	}{
		// names
		{`{"profiles": {"a-b": {}}}`, "/profiles/a-b", `did you mean "a_b"?`, -1},
		{`{"profiles": {"": {}}}`, "/profiles/", "empty profile name", -1},
		{`{"profiles": {"` + strings.Repeat("x", 33) + `": {}}}`, "/profiles/" + strings.Repeat("x", 33), "33 characters, the limit is 32", -1},
		{`{"profiles": {"é": {}}}`, "/profiles/é", "want letters, digits and underscore", -1},
		{`{"profiles": {"a/b~c": {}}}`, "/profiles/a~1b~0c", "want letters", -1},
		{`{"profiles": {"Safe": {}, "safe": {}}}`, "/profiles/safe", "differ only by case", -1},
		{`{"profiles": {"safe": null}}`, "/profiles/safe", "the profile is null", -1},
		{`{"defaultProfile": "save", "profiles": {"safe": {}}}`, "/defaultProfile", `did you mean "safe"?`, -1},
		{`{"defaultProfile": "", "profiles": {"safe": {}}}`, "/defaultProfile", "there is no profile", -1},
		{`{"defaultProfile": "sup", "profiles": {"supervised": {}}}`, "/defaultProfile", `did you mean "supervised"?`, -1},
		// extends
		{`{"profiles": {"p": {"extends": "q"}}}`, "/profiles/p/extends", `there is no profile "q"`, -1},
		{`{"profiles": {"p": {"extends": "p"}}}`, "/profiles/p/extends", "p -> p", -1},
		{`{"profiles": {"p": {"extends": "q"}, "q": {"extends": "r"}, "r": {"extends": "q"}}}`, "/profiles/r/extends", "r -> q -> r", -1},
		{`{"profiles": {"p": {"default": "ask"}, "q": {"extends": "p"}, "r": {"extends": "q", "default": "risk"}}}`, "/profiles/r/default", "would weaken ask", -1},
		{`{"profiles": {"p": {"elicitationFallback": "deny"}, "q": {"extends": "p", "elicitationFallback": "allow"}}}`, "/profiles/q/elicitationFallback", "would weaken", -1},
		{`{"profiles": {"p": {"risk": {"high": {"requireReason": true}}}, "q": {"extends": "p", "risk": {"high": {"requireReason": false}}}}}`, "/profiles/q/risk/high/requireReason", "would weaken", -1},
		{`{"profiles": {"p": {"risk": {"low": {"remember": false}}}, "q": {"extends": "p", "risk": {"low": {"remember": true}}}}}`, "/profiles/q/risk/low/remember", "would weaken", -1},
		{`{"profiles": {"p": {"risk": {"low": {"quorum": {"need": 2}}}}, "q": {"extends": "p", "risk": {"low": {"quorum": {"need": 1}}}}}}`, "/profiles/q/risk/low/quorum/need", "would weaken", -1},
		// words
		{`{"profiles": {"p": {"default": "riks"}}}`, "/profiles/p/default", `did you mean "risk"?`, -1},
		{`{"profiles": {"p": {"elicitationFallback": "ask"}}}`, "/profiles/p/elicitationFallback", "want one of deny, queue, allow", -1},
		{`{"risk": {"unknown": "hihg"}}`, "/risk/unknown", `did you mean "high"?`, -1},
		{`{"risk": {"unknown": ""}}`, "/risk/unknown", "unknown word", -1},
		{rules(`{"tools": ["*"], "action": "forbid"}`), rule0 + "/action", "want one of allow, notify, ask, manual, deny", -1},
		{rules(`{"tools": ["*"], "risk": "severe"}`), rule0 + "/risk", "want one of low, medium, high, critical", -1},
		// times
		{`{"timeout": "0s"}`, "/timeout", "waiting forever does not exist", -1},
		{`{"pausedFor": "-1h"}`, "/pausedFor", "waiting forever", -1},
		{`{"timeout": "1000000h"}`, "/timeout", "too long", -1},
		{`{"clientPatience": "0s"}`, "/clientPatience", "waiting forever", -1},
		{`{"clientPatience": {"a/b": "0s"}}`, "/clientPatience/a~1b", "waiting forever", -1},
		{`{"risk": {"low": {"timeout": "0s"}}}`, "/risk/low/timeout", "waiting forever", -1},
		{`{"profiles": {"p": {"timeout": "-1s"}}}`, "/profiles/p/timeout", "waiting forever", -1},
		{`{"profiles": {"p": {"risk": {"critical": {"timeout": "0s"}}}}}`, "/profiles/p/risk/critical/timeout", "waiting forever", -1},
		{rules(`{"tools": ["*"], "action": "ask", "timeout": "0s"}`), rule0 + "/timeout", "waiting forever", -1},
		{`{"profiles": {"p": {"limits": {"cpu": "0s"}}}}`, "/profiles/p/limits/cpu", "waiting forever", -1},
		{`{"profiles": {"p": {"limits": {"calls": 0}}}}`, "/profiles/p/limits/calls", "above zero", -1},
		{`{"profiles": {"p": {"limits": {"logs": "0B"}}}}`, "/profiles/p/limits/logs", "above zero", -1},
		// globs
		{`{"profiles": {"p": {"allowlist": ["a", "b["]}}}`, "/profiles/p/allowlist/1", `"[" is not closed`, 1},
		{`{"profiles": {"p": {"denylist": [""]}}}`, "/profiles/p/denylist/0", "empty pattern", -1},
		{`{"profiles": {"p": {"asklist": ["x__{a,b"]}}}`, "/profiles/p/asklist/0", `"{" is not closed`, 3},
		{rules(`{"tools": ["a}"], "action": "deny"}`), rule0 + "/tools/0", `"}" without "{"`, 1},
		// rules
		{rules(`{"action": "deny"}`), rule0 + "/tools", "names no tool", -1},
		{rules(`{"tools": [], "action": "deny"}`), rule0 + "/tools", "names no tool", -1},
		{rules(`{"tools": ["*"]}`), rule0, "says nothing", -1},
		{rules(`{"tools": ["*"], "when": "args.x"}`), rule0, "says nothing", -1},
		{rules(`{"tools": ["*"], "action": "deny", "name": "n"}, {"tools": ["*"], "action": "deny", "name": "n"}`), "/profiles/p/rules/1/name", "another rule", -1},
		{rules(`{"tools": ["*"], "action": "deny", "name": ""}`), rule0 + "/name", "1 to 64", -1},
		{rules(`{"tools": ["*"], "action": "deny", "reason": " "}`), rule0 + "/reason", "empty", -1},
		{rules(`{"tools": ["*"], "action": "deny", "requireReason": true}`), rule0 + "/requireReason", "asks nobody", -1},
		{rules(`{"tools": ["*"], "action": "notify", "timeout": "3s"}`), rule0 + "/timeout", "asks nobody", -1},
		{rules(`{"tools": ["*"], "action": "deny", "check": ["true"]}`), rule0 + "/check", "never checked", -1},
		{rules(`{"tools": ["*"], "action": "manual", "remember": true}`), rule0 + "/remember", "by hand every time", -1},
		{rules(`{"tools": ["*"], "action": "ask", "quorum": {}}`), rule0 + "/quorum/need", "1 to 16", -1},
		{rules(`{"tools": ["*"], "action": "ask", "quorum": {"need": 2, "of": ["a", "a"]}}`), rule0 + "/quorum/of/1", "different", -1},
		{rules(`{"tools": ["*"], "action": "ask", "quorum": {"need": 2, "of": ["a"], "inOrder": true}}`), rule0 + "/quorum/inOrder", "as many", -1},
		{rules(`{"tools": ["*"], "hidden": [""]}`), rule0 + "/hidden", "empty key", -1},
		{rules(`{"tools": ["*"], "display": {"maxDepth": 0}}`), rule0 + "/display/maxDepth", "above zero", -1},
		// CEL
		{rules(`{"tools": ["*"], "action": "deny", "when": ""}`), rule0 + "/when", "empty expression", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": "args.path =="}`), rule0 + "/when", "ends too early", 12},
		{rules(`{"tools": ["*"], "action": "deny", "when": "args.path === 'x'"}`), rule0 + "/when", "CEL compares with ==", 12},
		{rules(`{"tools": ["*"], "action": "deny", "when": "args.path.startsWith(3)"}`), rule0 + "/when", "no matching overload", 20},
		{rules(`{"tools": ["*"], "action": "deny", "when": "'é' != args.x && arg.x"}`), rule0 + "/when", "undeclared reference to 'arg'", 18},
		{rules(`{"tools": ["*"], "action": "deny", "when": "true &&\n foo"}`), rule0 + "/when", "undeclared reference to 'foo'", 9},
		{rules(`{"tools": ["*"], "action": "deny", "when": "run.call > 3"}`), rule0 + "/when", "did you mean 'run.calls'?", 3},
		{rules(`{"tools": ["*"], "action": "deny", "when": "run.calls > 'x'"}`), rule0 + "/when", "no matching overload", 10},
		{rules(`{"tools": ["*"], "action": "deny", "when": "annotations.readonlyHint"}`), rule0 + "/when", `did you mean "readOnlyHint"?`, 11},
		{rules(`{"tools": ["*"], "action": "deny", "when": "size(args)"}`), rule0 + "/when", "want true or false", 0},
		{rules(`{"tools": ["*"], "action": "deny", "when": "args.x.matches('(')"}`), rule0 + "/when", "missing closing )", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": "args.a.all(i, i.b.all(j, j.c.all(k, k > 0)))"}`), rule0 + "/when", "costs too much", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": "` + strings.Repeat(" ", maxExpr) + `true"}`), rule0 + "/when", "the limit is 4096", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": "` + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500) + `"}`), rule0 + "/when", "recursion", -1},
		{rules(`{"tools": ["*"], "action": "ask", "check": ["true", "args."]}`), rule0 + "/check/1", "not expected here", 5},
		// plain form
		{rules(`{"tools": ["*"], "action": "deny", "when": []}`), rule0 + "/when", "tests nothing", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "a", "matches": "("}]}`), rule0 + "/when/0/matches", "missing closing )", 0},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "a", "matches": "x"}, {"param": "a", "matches": "x(?=y)"}]}`), rule0 + "/when/1/matches", "no look-around", 1},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "a", "matches": ""}]}`), rule0 + "/when/0/matches", "empty regular expression", -1},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "a..b", "matches": "x"}]}`), rule0 + "/when/0/param", "empty name", 2},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "a.", "matches": "x"}]}`), rule0 + "/when/0/param", "without a name", 2},
		{rules(`{"tools": ["*"], "action": "deny", "when": [{"param": "", "matches": "x"}]}`), rule0 + "/when/0/param", "without a name", 0},
		// examples
		{rules(`{"tools": ["a__x"], "action": "deny", "when": "args.n > 3", "examples": {"match": [{"args": {"n": 2}}]}}`), rule0 + "/examples/match/0", "does not apply", -1},
		{rules(`{"tools": ["a__x"], "action": "deny", "when": "args.n > 3", "examples": {"noMatch": [{"args": {"n": 2}}, {"args": {}}]}}`), rule0 + "/examples/noMatch/1", "counts as true", -1},
		{rules(`{"tools": ["a__*"], "action": "deny", "examples": {"match": [{"tool": "b__x"}]}}`), rule0 + "/examples/match/0", "for other tools", -1},
		{rules(`{"tools": ["a__*"], "action": "deny", "examples": {"match": [{"args": {}}]}}`), rule0 + "/examples/match/0", "names no tool", -1},
		{rules(`{"tools": ["a__x"], "action": "deny", "examples": {"match": [{"args": [1]}]}}`), rule0 + "/examples/match/0/args", "want an object", -1},
	} {
		s, problems := Parse(spec(t, test.section))
		if len(problems) != 1 {
			t.Errorf("%s: problems %v, want one", test.section, problems)
			continue
		}
		p := problems[0]
		if s != nil {
			t.Errorf("%s: a set in spite of its problem", test.section)
		}
		if diff := cmp.Diff([]any{test.path, test.offset}, []any{p.Path, p.Offset}); diff != "" || !strings.Contains(p.String(), test.message) {
			t.Errorf("%s: got %s, want %s (-want +got):\n%s", test.section, p, test.message, diff)
		}
	}
}

// The limit of profiles is reached, and not passed.
func TestProfilesAreBounded(t *testing.T) {
	section := Spec{Profiles: map[string]*ProfileSpec{}}
	for i := range maxProfiles {
		section.Profiles[fmt.Sprintf("p%d", i)] = &ProfileSpec{}
	}
	if _, problems := Parse(section); len(problems) > 0 {
		t.Errorf("%d profiles: %v", maxProfiles, problems)
	}
	section.Profiles["more"] = &ProfileSpec{}
	set, problems := Parse(section)
	if set != nil || len(problems) != 1 || problems[0].Path != "/profiles" || !strings.Contains(problems[0].Message, "65 profiles, the limit is 64") {
		t.Errorf("one more: %v", problems)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, problems := Parse(spec(t, `{"timeout": "0s", "defaultProfile": "x", "profiles": {"a": {"allowlist": ["[", "]"], "extends": "y"}}}`))
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	if want := []string{"/defaultProfile", "/profiles/a/allowlist/0", "/profiles/a/allowlist/1", "/profiles/a/extends", "/timeout"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
}

// The types that decode themselves are as strict as the decoder around them.
func TestStrictTypes(t *testing.T) {
	for _, test := range []struct{ rule, message string }{
		{`{"when": 3}`, "want an expression"},
		{`{"when": null}`, ""}, // a null pointer: the decoder around it refuses null everywhere
		{`{"when": {"param": "a", "matches": "b"}}`, "want an expression"},
		{`{"when": [{"param": "a"}]}`, `test 1: "matches" is missing`},
		{`{"when": [{"param": "a", "matches": "b"}, {"matches": "b"}]}`, `test 2: "param" is missing`},
		{`{"when": [{"param": "a", "matches": null}]}`, "want a string"},
		{`{"when": [{"param": "a", "param": "b", "matches": "c"}]}`, `duplicate key "param"`},
		{`{"when": [{"Param": "a", "matches": "c"}]}`, `unknown key "Param"`},
		{`{"when": ["x"]}`, "want an object"},
		{`{"when": [null]}`, "want an object"},
		{`{"hidden": "x"}`, "want a list of keys"},
		{`{"hidden": [3]}`, "want a string"},
		{`{"hidden": {"a": 3}}`, "want a string"},
		{`{"hidden": {"a": "x", "a": "y"}}`, `duplicate key "a"`},
		{`{"timeout": "5"}`, "not a duration such as"},
		{`{"timeout": 5}`, "cannot unmarshal number"},
	} {
		var r RuleSpec
		err := json.Unmarshal([]byte(test.rule), &r)
		if (err == nil) != (test.message == "") || err != nil && !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %q", test.rule, err, test.message)
		}
	}
	for _, test := range []struct{ text, message string }{
		{`{"clientPatience": 5}`, "want a duration"},
		{`{"clientPatience": {"a": 5}}`, "a: want a string"},
		{`{"clientPatience": {"a": "x"}}`, "a: \"x\" is not a duration"},
		{`{"clientPatience": {"a": "5s", "a": "6s"}}`, `duplicate key "a"`},
	} {
		var s Spec
		if err := json.Unmarshal([]byte(test.text), &s); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %q", test.text, err, test.message)
		}
	}
	for text, want := range map[string]int64{"0B": 0, "64KB": 64 << 10, "16MB": 16 << 20, "1GB": 1 << 30, "1536B": 1536, "64": -1, "KB": -1, "1.5MB": -1, "9999999999GB": -1} {
		var s Size
		err := s.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && int64(s) != want {
			t.Errorf("size %s: %d, %v", text, s, err)
		}
	}
}

// What is written prints back the same: the revision and `profiles show`
// depend on it.
func TestSpecPrintsBack(t *testing.T) {
	const text = `{"enabled":true,"defaultProfile":"p","timeout":"1m30s","clientPatience":{"codex":"10s","default":"50s"},` +
		`"risk":{"unknown":"medium","high":{"timeout":"5s","quorum":{"need":1}}},` +
		`"profiles":{"p":{"allowlist":["a"],"rules":[{"tools":["x"],"when":[{"param":"a","matches":"b"}],"action":"ask","hidden":{"pin":"","ssn":"[n]"}},` +
		`{"tools":["y"],"when":"args.x == 1","action":"deny","examples":{"match":[{"args":{"x":1}}]}}],"limits":{"heap":"64MB","calls":3}}}}`
	printed, err := json.Marshal(spec(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	json.Unmarshal(printed, &got)
	json.Unmarshal([]byte(text), &want)
	if pretty(got) != pretty(want) {
		t.Errorf("got  %s\nwant %s", printed, text)
	}
}

func TestRevision(t *testing.T) {
	base := set(t, `{"timeout": "2m", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask"}]}, "b": {}}}`)
	for name, text := range map[string]string{
		"order of keys": `{"profiles": {"b": {}, "a": {"rules": [{"action": "ask", "tools": ["x"]}], "allowlist": ["x"]}}, "timeout": "2m"}`,
		"spelling":      `{"timeout": "120s", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["\u0078"], "action": "ask"}]}, "b": {}}}`,
		"examples":      `{"timeout": "2m", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask", "examples": {"match": [{}]}}]}, "b": {}}}`,
	} {
		if s := set(t, text); s.Revision() != base.Revision() {
			t.Errorf("%s changes the revision", name)
		}
	}
	for name, text := range map[string]string{
		"time":            `{"timeout": "3m", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask"}]}, "b": {}}}`,
		"switch":          `{"enabled": false, "timeout": "2m", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask"}]}, "b": {}}}`,
		"empty allowlist": `{"timeout": "2m", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask"}]}, "b": {"allowlist": []}}}`,
		"default":         `{"timeout": "2m", "defaultProfile": "a", "profiles": {"a": {"allowlist": ["x"], "rules": [{"tools": ["x"], "action": "ask"}]}, "b": {}}}`,
	} {
		if s := set(t, text); s.Revision() == base.Revision() {
			t.Errorf("%s does not change the revision", name)
		}
	}
	with, _ := Parse(Spec{}, Options{OwnFiles: []string{"/a/b", "/c/d"}})
	swapped, _ := Parse(Spec{}, Options{OwnFiles: []string{"/c/d", "/a/b"}})
	without, _ := Parse(Spec{})
	if with.Revision() != swapped.Revision() || with.Revision() == without.Revision() {
		t.Error("the own files are part of the policy, their order is not")
	}
	a, _ := base.Profile("a")
	if a.Decide(call(t, "x", "")).Revision != base.Revision() || !strings.HasPrefix(base.Revision(), "sha256:") {
		t.Error("decisions carry another revision than the set")
	}
}

func TestExtends(t *testing.T) {
	s := set(t, `{"profiles": {
	  "base": {"denylist": ["a__d"], "asklist": ["a__q"], "allowlist": ["a__ok"], "timeout": "20s", "elicitationFallback": "queue",
	    "limits": {"calls": 10, "cpu": "2s"}, "rules": [{"tools": ["a__r"], "action": "deny", "reason": "never"}]},
	  "mid": {"extends": "base", "asklist": ["a__ok"], "risk": {"high": {"timeout": "5s"}}},
	  "leaf": {"extends": "mid", "allowlist": ["*"], "limits": {"calls": 20, "cpu": "1s"}}}}`)
	leaf, _ := s.Profile("leaf")
	decide(t, leaf,
		deny("a__d", `{}`, "[profile base]"),
		deny("a__r", `{}`, "never [profile base]"),
		ask("a__q", `{}`, "[profile base]"),
		ask("a__ok", `{}`, "[profile mid]"),
		allow("a__new", `{}`, "[profile leaf]"),
	)
	if d := leaf.Decide(call(t, "a__q", `{}`)); d.Timeout != 5*time.Second || d.Fallback != FallbackQueue {
		t.Errorf("inherited settings: %s", pretty(d))
	}
	l := leaf.Limits()
	if *l.Calls != 10 || *l.CPU != Duration(time.Second) || l.Heap != nil {
		t.Errorf("limits: %s", pretty(l))
	}
	e := leaf.Effective()
	want := ProfileSpec{Denylist: []string{"a__d"}, Asklist: []string{"a__q", "a__ok"}, Allowlist: []string{"a__ok", "*"}, Default: new("allow"), ElicitationFallback: new("queue")}
	got := ProfileSpec{Denylist: e.Denylist, Asklist: e.Asklist, Allowlist: e.Allowlist, Default: e.Default, ElicitationFallback: e.ElicitationFallback, Extends: e.Extends}
	if diff := cmp.Diff(want, got); diff != "" || len(e.Rules) != 1 {
		t.Errorf("effective, with %d rules (-want +got):\n%s", len(e.Rules), diff)
	}
	// What it comes to, written as a profile, decides the same.
	flat, problems := Parse(Spec{Profiles: map[string]*ProfileSpec{"leaf": &e.ProfileSpec}})
	if problems != nil {
		t.Fatal(problems)
	}
	f, _ := flat.Profile("leaf")
	for _, tool := range []string{"a__d", "a__r", "a__q", "a__ok", "a__new", "b__delete"} {
		one, two := leaf.Decide(call(t, tool, `{}`)), f.Decide(call(t, tool, `{}`))
		if one.Disposition != two.Disposition || one.Timeout != two.Timeout || one.Remember != two.Remember {
			t.Errorf("%s: %s, written out %s", tool, pretty(one), pretty(two))
		}
	}
}

func TestSettingsOfTheSet(t *testing.T) {
	s := set(t, `{"pausedFor": "2h", "clientPatience": {"default": "40s", "codex": "10m"}, "profiles": {"b": {}, "a": {}}}`)
	if s.PausedFor() != 2*time.Hour || s.ClientPatience("codex") != 10*time.Minute || s.ClientPatience("other") != 40*time.Second {
		t.Errorf("paused %s, codex %s, other %s", s.PausedFor(), s.ClientPatience("codex"), s.ClientPatience("other"))
	}
	if !slices.Equal(s.Names(), []string{"a", "b"}) || !s.Enabled() {
		t.Errorf("names %v, enabled %t", s.Names(), s.Enabled())
	}
	if s := set(t, `{"clientPatience": "7s"}`); s.ClientPatience("codex") != 7*time.Second {
		t.Errorf("one patience for all: %s", s.ClientPatience("codex"))
	}
}
