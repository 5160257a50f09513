package profiles

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestListsOfTheHandbook(t *testing.T) {
	s := set(t, `{
	  "defaultProfile": "supervised",
	  "profiles": {
	    "safe": {"allowlist": ["time__*", "search_tools", "get_tools"]},
	    "supervised": {
	      "denylist": ["filesystem__delete_*"],
	      "asklist": ["filesystem__*", "gitlab__*"],
	      "elicitationFallback": "deny",
	      "rules": [
	        {"tools": ["filesystem__write_file"], "when": "clean(args.path).startsWith('/etc/')",
	         "risk": "critical", "action": "deny", "reason": "system configuration"},
	        {"tools": ["gitlab__merge_*"], "action": "ask", "risk": "high", "timeout": "2m", "requireReason": true}
	      ]}}}`)
	safe, _ := s.Profile("safe")
	decide(t, safe,
		allow("time__now", `{}`, `allowlist: "time__*"`),
		allow("search_tools", `{"query":"x"}`, "allowlist"),
		deny("get_tool_schema", `{}`, "not on the allowlist"),
		deny("filesystem__read_file", `{}`, "not on the allowlist"),
	)
	decide(t, s.Default(),
		deny("filesystem__delete_file", `{}`, `denylist: "filesystem__delete_*"`),
		deny("filesystem__write_file", `{"path":"/etc/passwd"}`, "system configuration"),
		deny("filesystem__write_file", `{"path":"/tmp/../etc/passwd"}`, "system configuration"),
		deny("filesystem__write_file", `{}`, "could not be decided: no such key: path"),
		deny("filesystem__write_file", `{"path":7}`, "not of the type"),
		ask("filesystem__write_file", `{"path":"/tmp/x"}`, `asklist: "filesystem__*"`),
		ask("filesystem__read_file", `{"path":"/etc/passwd"}`, "asklist"),
		ask("gitlab__merge_request", `{}`, "asklist"),
		allow("time__now", `{}`, "default: allow"),
		allow("search_tools", `{}`, "default: allow"),
		allow("time__delete", `{}`, "default: allow"),
		allow("otherfilesystem__delete_x", `{}`, "default: allow"),
		ask("time__now", `{}`, "not as a person has last seen", changed),
		deny("filesystem__delete_file", `{}`, "denylist", changed),
	)
	merge := s.Default().Decide(call(t, "gitlab__merge_request", `{}`))
	if diff := cmp.Diff([]any{2 * time.Minute, true, false, High}, []any{merge.Timeout, merge.RequireReason, merge.Remember, merge.Risk}); diff != "" {
		t.Errorf("the rule's duties are lost (-want +got):\n%s", diff)
	}
}

// P1 and C11 to C13, over every subset of lists and rule actions that match
// one tool, and every default.
func TestPrecedenceOverAllSubsets(t *testing.T) {
	parts := []struct {
		text  string
		list  bool
		says  Disposition
		other bool // exists, but names another tool
	}{
		{`"denylist": ["a__x"]`, true, Deny, false},
		{`"asklist": ["a__*"]`, true, Ask, false},
		{`"allowlist": ["*"]`, true, Allow, false},
		{`"allowlist": ["b__y"]`, true, 0, true},
		{`{"tools":["a__x"],"action":"deny"}`, false, Deny, false},
		{`{"tools":["a__x"],"action":"manual"}`, false, Ask, false},
		{`{"tools":["a__x"],"action":"ask"}`, false, Ask, false},
		{`{"tools":["a__x"],"action":"notify"}`, false, Allow, false},
		{`{"tools":["a__x"],"action":"allow"}`, false, Allow, false},
	}
	rules := func(i int) bool { return !parts[i].list }
	for mask := 0; mask < 1<<len(parts); mask++ {
		if mask&0b1100 == 0b1100 {
			continue // one allowlist at a time
		}
		for _, otherwise := range []string{"allow", "ask", "deny", "risk"} {
			keys, ruleTexts := []string{fmt.Sprintf(`"default": %q`, otherwise)}, []string{}
			want, listed, manual := Disposition(0), false, false
			for i, part := range parts {
				if mask&(1<<i) == 0 {
					continue
				}
				if rules(i) {
					ruleTexts = append(ruleTexts, part.text)
				} else {
					keys = append(keys, part.text)
				}
				want = max(want, part.says)
				listed = listed || strings.Contains(part.text, "allowlist")
				manual = manual || strings.Contains(part.text, "manual")
			}
			keys = append(keys, `"rules": [`+strings.Join(ruleTexts, ",")+`]`)
			if want == 0 {
				want = map[string]Disposition{"allow": Allow, "ask": Ask, "deny": Deny, "risk": Ask}[otherwise]
				if listed {
					want = Deny
				}
			}
			text := "{" + strings.Join(keys, ",") + "}"
			d := profile(t, text).Decide(call(t, "a__x", `{}`))
			if d.Disposition != want || d.Manual != (manual && want == Ask) {
				t.Fatalf("%s: %s (manual %t), want %s", text, d.Disposition, d.Manual, want)
			}
			if d.Because().Disposition != want {
				t.Fatalf("%s: the first reason is %s", text, d.Because())
			}
		}
	}
}

func TestPlainConditions(t *testing.T) {
	const paths = `"when": [{"param": "path", "matches": "^/etc/"}]`
	decide(t, profile(t, `{"rules": [{"tools": ["fs__*"], `+paths+`, "action": "deny"}]}`),
		deny("fs__w", `{"path":"/etc/passwd"}`, "rule"),
		deny("fs__w", `{"path":"/tmp/../etc/passwd"}`, "in part"),
		deny("fs__w", `{"path":"/etc/../tmp/x"}`, "in part"),
		deny("fs__w", `{"path":"/etc//passwd"}`, "rule"),
		deny("fs__w", `{"path":"/./etc/passwd"}`, "in part"),
		deny("fs__w", `{"path":"\\etc\\passwd"}`, "in part"),
		deny("fs__w", `{"path":["/tmp/a","/etc/b"]}`, "in part"),
		deny("fs__w", `{"path":{"path":"/etc/b"}}`, "not a string"),
		deny("fs__w", `{"path":null}`, "not a string"),
		deny("fs__w", `{}`, "there is no path"),
		deny("fs__w", ``, "there is no path"),
		allow("fs__w", `{"path":"/tmp/x"}`, "default"),
		allow("fs__w", `{"path":["/tmp/a","/tmp/b"]}`, "default"),
		allow("fs__w", `{"path":[]}`, "default"),
		allow("other__w", `{}`, "default"),
	)
	decide(t, profile(t, `{"default": "deny", "rules": [{"tools": ["fs__*"], "when": [{"param": "path", "matches": "^/tmp/"}], "action": "allow"}]}`),
		allow("fs__w", `{"path":"/tmp/x"}`, "rule"),
		allow("fs__w", `{"path":"/tmp/"}`, "rule"),
		allow("fs__w", `{"path":["/tmp/a","/tmp/b"]}`, "rule"),
		deny("fs__w", `{"path":"/tmp/../etc/passwd"}`, "default"),
		deny("fs__w", `{"path":["/tmp/a","/etc/b"]}`, "default"),
		deny("fs__w", `{"path":["/tmp/a",1]}`, "default"),
		deny("fs__w", `{}`, "default"),
		deny("fs__w", `{"path":7}`, "default"),
	)
	decide(t, profile(t, `{"default": "deny", "rules": [{"tools": ["web__*"], "when": [{"param": "url", "matches": "^https://api\\.example\\.com/"}], "action": "allow"}]}`),
		allow("web__get", `{"url":"https://api.example.com/v1/items"}`, "rule"),
		deny("web__get", `{"url":"https://api.example.com/../../x"}`, "default"),
		deny("web__get", `{"url":"https://api.example.com.evil.com/"}`, "default"),
	)
	decide(t, profile(t, `{"rules": [{"tools": ["*"], "when": [{"param": "a.b\\.c", "matches": "x"}, {"param": "list.name", "matches": "y"}], "action": "deny"}]}`),
		deny("s__t", `{"a":{"b.c":"x"},"list":[{"name":"y"}]}`, "rule"),
		deny("s__t", `{"a":{"b.c":"x"},"list":[{"name":"n"},{"name":"y"}]}`, "in part"),
		deny("s__t", `{"a":{"b.c":"x"},"list":[{}]}`, "there is no list.name"),
		allow("s__t", `{"a":{"b.c":"n"},"list":[{"name":"y"}]}`, "default"),
		allow("s__t", `{"a":{"b.c":"n"}}`, "default"), // one test is false, so the other cannot matter
	)
}

func TestExpressions(t *testing.T) {
	for _, test := range []struct {
		when string
		args string
		want truth
	}{
		{`args.n > 3`, `{"n": 4}`, yes},
		{`args.n > 3`, `{"n": 4.5}`, yes},
		{`args.n > 3`, `{"n": 3}`, no},
		{`args.n > 3`, `{"n": "4"}`, undecided},
		{`args.n > 3`, `{}`, undecided},
		{`args.n * 2 == 8`, `{"n": 4}`, yes},
		{`args.n == 9007199254740993`, `{"n": 9007199254740993}`, yes},
		{`args.n == 9007199254740993`, `{"n": 9007199254740992}`, no},
		{`args.n == 18446744073709551615u`, `{"n": 18446744073709551615}`, yes},
		{`args.n == 18446744073709551615u`, `{"n": 18446744073709551614}`, no},
		{`args.l[0].n == 18446744073709551615u`, `{"l": [{"n": 18446744073709551614}]}`, no},
		{`has(args.force) && args.force`, `{"force": true}`, yes},
		{`has(args.force) && args.force`, `{}`, no},
		{`args.force`, `{"force": true}`, yes},
		{`args.force`, `{"force": "yes"}`, undecided},
		{`args.missing || args.n == 1`, `{"n": 1}`, yes},
		{`args.missing && args.n == 1`, `{"n": 2}`, no},
		{`args.missing || args.n == 1`, `{"n": 2}`, undecided},
		{`args.paths.exists(p, clean(p).startsWith('/etc/'))`, `{"paths": ["/tmp", "/tmp/../etc/x"]}`, yes},
		{`args.paths.exists(p, clean(p).startsWith('/etc/'))`, `{"paths": []}`, no},
		{`args.paths.all(p, p.startsWith('/tmp/'))`, `{"paths": ["/tmp/x", 1]}`, undecided},
		{`host(args.url) == 'example.com'`, `{"url": "https://u:p@EXAMPLE.com.:443/x"}`, yes},
		{`host(args.url) == 'example.com'`, `{"url": "https://example.com\\@evil.com"}`, undecided},
		{`args.cmd.matches('(?i)\\brm\\b')`, `{"cmd": "sudo RM -rf /"}`, yes},
		{`args.cmd.matches(args.re)`, `{"cmd": "x", "re": "("}`, undecided},
		{`tool == 't' && server == 's'`, `{}`, yes},
		{`run.calls >= 7 && run.bytes > 10 && 's__u' in run.tools`, `{}`, yes},
		{`annotations.readOnlyHint`, `{}`, yes},
		{`annotations.destructiveHint`, `{}`, undecided},
		{`has(annotations.destructiveHint)`, `{}`, no},
		{`args.deep.er['k'].contains('x')`, `{"deep": {"er": {"k": "axb"}}}`, yes},
		{`'null' in args && args['null'] == null`, `{"null": null}`, yes},
	} {
		e, err := compileExpr(test.when)
		if err != nil {
			t.Errorf("%s: %v", test.when, err)
			continue
		}
		c := call(t, "s__t", test.args)
		c.Run = RunFacts{Calls: 7, Bytes: 11, Tools: []string{"s__u"}}
		c.Annotations.ReadOnly = yesPtr()
		got, why := e.eval(&facts{call: &c})
		if got != test.want {
			t.Errorf("%s over %s: %d (%s), want %d", test.when, test.args, got, why, test.want)
		}
		if (why != "") != (got == undecided) {
			t.Errorf("%s over %s: %d with the explanation %q", test.when, test.args, got, why)
		}
	}
}

// An expression that is cheap on ordinary arguments meets huge ones.
func TestExpressionThatRunsTooLong(t *testing.T) {
	p := profile(t, `{"rules": [{"tools": ["*"], "when": "args.l.exists(x, args.l.exists(y, x + y == -1))", "action": "deny"}]}`)
	c := Call{Server: "s", Tool: "t", Args: map[string]any{}}
	var l []any
	for i := range 5000 {
		l = append(l, i)
	}
	c.Args["l"] = l[:10]
	if d := p.Decide(c); d.Disposition != Allow {
		t.Errorf("ten elements: %s", d.Because())
	}
	c.Args["l"] = l
	d := p.Decide(c)
	if d.Disposition != Deny || !d.Because().Undecided || !strings.Contains(d.Because().Detail, "cost limit") {
		t.Errorf("5,000 elements: %s because %s, want a denial for the cost", d.Disposition, d.Because())
	}
}

func TestErrorsQuoteNoArgument(t *testing.T) {
	p := profile(t, `{"rules": [{"tools": ["*"], "when": "int(args.token) > 3", "action": "deny"},
	  {"tools": ["*"], "when": "args.m[args.token] == 1", "action": "deny"}, {"tools": ["*"], "when": "host(args.token) == 'x'", "action": "deny"},
	  {"tools": ["*"], "when": "timestamp(args.token) == timestamp(args.token)", "action": "deny"}]}`)
	d := p.Decide(call(t, "s__t", `{"token": "hunter2", "m": {}}`))
	if len(d.Reasons) < 4 || strings.Contains(pretty(d), "hunter2") {
		t.Errorf("the reasons quote an argument's value, or are missing: %s", pretty(d))
	}
}

func TestDuties(t *testing.T) {
	s := set(t, `{
	  "timeout": "200s",
	  "risk": {"unknown": "medium", "medium": {"timeout": "100s", "remember": false}, "critical": {"quorum": {"need": 2}}},
	  "profiles": {
	    "p": {"asklist": ["*"], "timeout": "50s", "elicitationFallback": "allow", "risk": {"high": {"timeout": "30s", "requireReason": true}},
	      "rules": [
	        {"tools": ["s__short"], "risk": "medium", "timeout": "10s"},
	        {"tools": ["s__short"], "timeout": "20s", "remember": true},
	        {"tools": ["s__both"], "remember": true, "requireReason": true},
	        {"tools": ["s__both"], "remember": false, "requireReason": false},
	        {"tools": ["s__crit"], "risk": "critical", "requireReason": false},
	        {"tools": ["s__quorum"], "action": "ask", "quorum": {"need": 2, "of": ["ops", "security"], "inOrder": true}},
	        {"tools": ["s__two"], "quorum": {"need": 2}, "remember": true},
	        {"tools": ["s__why"], "requireReason": true, "remember": true},
	        {"tools": ["s__manual"], "action": "manual"},
	        {"tools": ["s__maybe"], "when": "args.x", "remember": true, "requireReason": false, "risk": "low"},
	        {"tools": ["s__maybe"], "when": "args.y", "requireReason": true, "risk": "critical", "quorum": {"need": 3}}
	      ]},
	    "q": {"asklist": ["*"]}}}`)
	p, _ := s.Profile("p")
	q, _ := s.Profile("q")
	for _, test := range []struct {
		p    *Profile
		tool string
		want Decision
	}{
		{p, "s__get_x", Decision{Risk: Low, Timeout: 50 * time.Second, Remember: true, Fallback: FallbackAllow}},
		{q, "s__get_x", Decision{Risk: Low, Timeout: 200 * time.Second, Remember: true}},
		{p, "s__thing", Decision{Risk: Medium, Timeout: 100 * time.Second, Fallback: FallbackAllow}},
		{p, "s__delete", Decision{Risk: High, Timeout: 30 * time.Second, RequireReason: true, Fallback: FallbackAllow}},
		{q, "s__delete", Decision{Risk: High, Timeout: 200 * time.Second}},
		{p, "s__short", Decision{Risk: Medium, Timeout: 10 * time.Second, Remember: true, Fallback: FallbackAllow}},
		{p, "s__both", Decision{Risk: Medium, Timeout: 100 * time.Second, RequireReason: true, Fallback: FallbackAllow}},
		{p, "s__crit", Decision{Risk: Critical, Timeout: 50 * time.Second, Quorums: []Quorum{{Need: 2}}}},
		{p, "s__quorum", Decision{Risk: Medium, Timeout: 100 * time.Second, Quorums: []Quorum{{Need: 2, Of: []string{"ops", "security"}, InOrder: true}}}},
		{p, "s__two", Decision{Risk: Medium, Timeout: 100 * time.Second, Quorums: []Quorum{{Need: 2}}}},
		{p, "s__why", Decision{Risk: Medium, Timeout: 100 * time.Second, RequireReason: true, Fallback: FallbackAllow}},
		{p, "s__manual", Decision{Risk: Medium, Timeout: 100 * time.Second, Manual: true}},
		{p, "s__maybe", Decision{Risk: Critical, Timeout: 50 * time.Second, RequireReason: true, Quorums: []Quorum{{Need: 3}, {Need: 2}}}},
	} {
		want := test.want
		want.Disposition = Ask
		want.ReadOnly = test.tool == "s__get_x"
		want.TimeoutExplicit = test.p == p // the other has that of the whole policy
		if diff := cmp.Diff(want, test.p.Decide(call(t, test.tool, `{}`)), dutiesOnly); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", test.tool, test.p.Name(), diff)
		}
	}
}

// dutiesOnly leaves out of a comparison why a decision was made, and by which
// policy.
var dutiesOnly = cmpopts.IgnoreFields(Decision{}, "Reasons", "Observed", "Profile", "Revision", "Grounds")

func TestTableByDefault(t *testing.T) {
	p := profile(t, `{"default": "risk", "rules": [{"tools": ["s__low"], "risk": "low"}, {"tools": ["s__medium"], "risk": "medium"},
	  {"tools": ["s__high"], "risk": "high"}, {"tools": ["s__critical"], "risk": "critical"}]}`)
	for name, want := range map[string]Decision{
		"low":      {Disposition: Allow, Risk: Low},
		"medium":   {Disposition: Ask, Risk: Medium, Timeout: 300 * time.Second, Remember: true},
		"high":     {Disposition: Ask, Risk: High, Timeout: 300 * time.Second},
		"critical": {Disposition: Ask, Risk: Critical, Timeout: 300 * time.Second, RequireReason: true},
	} {
		d := p.Decide(call(t, "s__"+name, `{}`))
		if diff := cmp.Diff(want, d, dutiesOnly); diff != "" || d.Risk.String() != name {
			t.Errorf("%s is of risk %s (-want +got):\n%s", name, d.Risk, diff)
		}
	}
}

func TestGateDisabled(t *testing.T) {
	s := set(t, `{"enabled": false, "profiles": {"p": {"denylist": ["a__d"], "asklist": ["a__q"], "rules": [{"tools": ["a__m"], "action": "manual"}]}}}`)
	p, _ := s.Profile("p")
	decide(t, p,
		deny("a__d", `{}`, "denylist"),
		allow("a__q", `{}`, "evaluation.enabled is false"),
		allow("a__m", `{}`, "evaluation.enabled is false"),
		allow("a__x", `{}`, "evaluation.enabled is false", changed),
		allow("a__x", `{}`, "default"),
	)
	for _, tool := range []string{"a__d", "a__q", "a__x"} {
		if d := p.Decide(call(t, tool, `{}`)); !d.GateDisabled || d.Manual || d.Timeout != 0 {
			t.Errorf("%s: not marked, or still asking: %s", tool, pretty(d))
		}
	}
	if s.Enabled() {
		t.Error("the set says that it is enabled")
	}
}

func TestNoSection(t *testing.T) {
	s, problems := Parse(Spec{}, Options{OwnFiles: []string{"/home/u/.config/codemode/config.json"}})
	if problems != nil {
		t.Fatal(problems)
	}
	if s.Default().Name() != "" || len(s.Names()) != 0 {
		t.Errorf("default %q, names %v", s.Default().Name(), s.Names())
	}
	decide(t, s.Default(),
		allow("fs__delete_everything", `{"path":"/"}`, "default"),
		deny("fs__read", `{"path":"/home/u/.config/codemode/config.json"}`, "names a file of the bridge itself"),
		ask("fs__read", `{}`, "last seen", changed),
	)
	if s.PausedFor() != 168*time.Hour || s.ClientPatience("any") != 50*time.Second {
		t.Errorf("paused for %s, patience %s", s.PausedFor(), s.ClientPatience("any"))
	}
}

// P4: every error in the decision path denies, wherever it happens, also on
// top of what was found before.
func TestEveryErrorDenies(t *testing.T) {
	p := profile(t, `{"allowlist": ["*"], "rules": [{"tools": ["*"], "action": "notify"}]}`)
	c := call(t, "a__x", `{"path":"/tmp"}`)
	if d := p.Decide(c); d.Disposition != Allow {
		t.Fatalf("the call is not allowed to begin with: %s", d.Because())
	}
	boom := errors.New("boom")
	for i := range steps {
		for name, fault := range map[string]func(*tally) error{
			"error": func(*tally) error { return boom },
			"panic": func(*tally) error { panic("secret argument") },
			"nil":   func(t *tally) error { t.p = nil; return steps[i](t) },
		} {
			broken := slices.Clone(steps)
			broken[i] = fault
			if name == "nil" && (i == 4 || i == 7 || i == 9) {
				continue // these look at the policy only for other calls
			}
			d := p.decide(&c, broken, nil)
			if diff := cmp.Diff([]any{Deny, KindPolicyError, false, 1}, []any{d.Disposition, d.Because().Kind, d.Notify, len(d.Reasons)}); diff != "" {
				t.Errorf("%s in step %d (-want +got):\n%s", name, i, diff)
			}
			if strings.Contains(pretty(d), "secret") {
				t.Errorf("%s in step %d: the reason quotes the panic", name, i)
			}
		}
	}
	var gone *Profile
	if d := gone.Decide(c); d.Disposition != Deny || d.Because().Kind != KindPolicyError {
		t.Errorf("a profile that is gone: %s", pretty(d))
	}
	if gone.Sees("a", "x") {
		t.Error("a profile that is gone sees a tool")
	}
	if r := gone.Checks(c); len(r) != 1 || r[0].Passed {
		t.Errorf("a profile that is gone checks: %v", r)
	}
	c.Tool = strings.Repeat("x", maxPath)
	if d := p.Decide(c); d.Disposition != Deny || d.Because().Kind != KindPolicyError {
		t.Errorf("a name that is too long: %s", d.Because())
	}
}

func TestChecks(t *testing.T) {
	p := profile(t, `{"rules": [
	  {"tools": ["pay__*"], "action": "ask", "check": ["args.amount < 100", "args.currency == 'EUR'"], "name": "money"},
	  {"tools": ["pay__*"], "when": "args.amount > 50", "check": ["run.calls < 2"]}]}`)
	c := call(t, "pay__out", `{"amount": 60}`)
	c.Run.Calls = 1
	want := []CheckResult{
		{Rule: "money", Expr: "args.amount < 100", Passed: true},
		{Rule: "money", Expr: "args.currency == 'EUR'", Detail: "no such key: currency"},
		{Rule: "rules/1", Expr: "run.calls < 2", Passed: true},
	}
	if got := p.Checks(c); !slices.Equal(got, want) {
		t.Errorf("got %s", pretty(got))
	}
	if got := p.Checks(call(t, "pay__out", `{"amount": 10, "currency": "EUR"}`)); len(got) != 2 || !got[0].Passed || !got[1].Passed {
		t.Errorf("a small amount: %s", pretty(got))
	}
	if got := p.Checks(call(t, "other__x", `{}`)); len(got) != 0 {
		t.Errorf("another tool: %s", pretty(got))
	}
}

func TestHiddenAndDisplay(t *testing.T) {
	p := profile(t, `{"rules": [
	  {"tools": ["a__*"], "hidden": ["ssn", "pin"], "display": {"maxString": 100, "maxArray": 5}},
	  {"tools": ["a__x"], "hidden": {"ssn": "[number]"}, "display": {"maxString": 50}},
	  {"tools": ["b__*"], "hidden": ["other"]}]}`)
	d := p.Decide(call(t, "a__x", `{}`))
	if diff := cmp.Diff(map[string]string{"ssn": "[number]", "pin": ""}, d.Hidden); diff != "" {
		t.Errorf("other names are hidden (-want +got):\n%s", diff)
	}
	if want := (Display{MaxString: 50, MaxArray: 5}); d.Display != want {
		t.Errorf("got %+v, want %+v", d.Display, want)
	}
}

func TestSees(t *testing.T) {
	p := profile(t, `{"allowlist": ["a__*"], "asklist": ["b__ask"], "denylist": ["a__never"], "rules": [
	  {"tools": ["a__sometimes"], "when": "args.x == 1", "action": "deny"},
	  {"tools": ["a__also_never"], "action": "deny"},
	  {"tools": ["b__if"], "when": "args.x == 1", "action": "allow"},
	  {"tools": ["b__risk"], "risk": "low"}]}`)
	for name, want := range map[string]bool{
		"a__x": true, "a__never": false, "a__also_never": false, "a__sometimes": true,
		"b__ask": true, "b__if": true, "b__risk": false, "b__x": false, "search_tools": false,
	} {
		c := call(t, name, "")
		if got := p.Sees(c.Server, c.Tool); got != want {
			t.Errorf("sees %s: %t, want %t", name, got, want)
		}
	}
}

func TestReadOnly(t *testing.T) {
	p := profile(t, `{"denylist": ["*__delete_*"], "rules": [{"tools": ["*"], "risk": "low"}]}`)
	reading := []ToolFacts{{Server: "a", Tool: "get_x"}, {Server: "a", Tool: "delete_x"}, {Tool: "search_tools"}}
	if !p.ReadOnly(reading) {
		t.Error("a profile that can only read is not read-only")
	}
	if p.ReadOnly(append(reading, ToolFacts{Server: "a", Tool: "frobnicate"})) {
		t.Error("a rule's risk makes an unknown tool read-only")
	}
}

func TestExplain(t *testing.T) {
	p := profile(t, `{"denylist": ["a__no"], "asklist": ["a__*"], "allowlist": ["b__*"], "rules": [
	  {"tools": ["a__x"], "when": "args.n > 1", "action": "allow", "name": "small"},
	  {"tools": ["a__x"], "when": "args.n > 2", "action": "deny"},
	  {"tools": ["b__x"], "action": "deny"}]}`)
	e := p.Explain(call(t, "a__x", `{"n": 2}`))
	var got []string
	for _, trial := range e.Tried {
		got = append(got, fmt.Sprintf("%s %s%s: %t, %s", trial.Kind, trial.Rule, trial.Patterns, trial.Matched, trial.Outcome))
	}
	want := []string{
		"denylist [a__no]: false, another tool",
		"asklist [a__*]: true, matches: ask",
		"allowlist [b__*]: false, another tool",
		"rule small[a__x]: true, matches",
		"rule rules/1[a__x]: false, the condition is false",
		"rule rules/2[b__x]: false, another tool",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	e = p.Explain(call(t, "a__x", `{}`))
	if e.Decision.Disposition != Deny || e.Tried[3].Matched || !e.Tried[4].Matched || !strings.Contains(e.Tried[4].Outcome, "counts as true") {
		t.Errorf("undecided: %s", pretty(e))
	}
	if d := p.Explain(call(t, "c__x", `{}`)); d.Tried[len(d.Tried)-1].Outcome != "not on the allowlist: deny" {
		t.Errorf("not listed: %s", pretty(d.Tried))
	}
}

func TestStricter(t *testing.T) {
	decided := func(d Decision) Decision {
		d.Reasons = []Reason{{Kind: KindDefault, Disposition: d.Disposition}}
		return d
	}
	allowed := decided(Decision{Disposition: Allow, Risk: Low, Profile: "p", Revision: "1"})
	asked := decided(Decision{Disposition: Ask, Risk: Medium, Timeout: time.Minute, Remember: true, Fallback: FallbackAllow, Revision: "2"})
	careful := decided(Decision{Disposition: Ask, Manual: true, Risk: Critical, Timeout: time.Hour, RequireReason: true, Quorums: []Quorum{{Need: 2}}, Revision: "3"})
	denied := decided(Decision{Disposition: Deny, Risk: Low, Revision: "4"})
	off := decided(Decision{Disposition: Allow, GateDisabled: true, Risk: Critical, Revision: "5"})
	for _, test := range []struct {
		a, b Decision
		want Decision
	}{
		{allowed, allowed, allowed},
		{allowed, asked, Decision{Disposition: Ask, Risk: Medium, Timeout: time.Minute, Remember: true, Fallback: FallbackAllow, Revision: "2"}},
		{asked, careful, Decision{Disposition: Ask, Manual: true, Risk: Critical, Timeout: time.Minute, RequireReason: true, Quorums: []Quorum{{Need: 2}}, Revision: "3"}},
		{careful, denied, Decision{Disposition: Deny, Risk: Critical, Revision: "4"}},
		{asked, off, Decision{Disposition: Ask, Risk: Critical, Timeout: time.Minute, Remember: true, Revision: "2"}},
		{Decision{}, allowed, Decision{Disposition: Deny, Risk: Low}},
	} {
		for _, got := range []Decision{Stricter(test.a, test.b), Stricter(test.b, test.a)} {
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Decision{}, "Reasons", "Profile")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
	if d := Stricter(off, off); !d.GateDisabled {
		t.Error("both with the gate disabled, and the mark is lost")
	}
}
