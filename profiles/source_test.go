package profiles

import (
	"encoding/json"
	"strings"
	"testing"
)

// A policy that is kept and made again decides as it did: its revision, which is
// of everything that decisions depend on, is the same.
func TestSourceMakesTheSamePolicy(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            `{}`,
		"switched off":       `{"enabled": false, "profiles": {"p": {"asklist": ["*"]}}}`,
		"an empty allowlist": `{"profiles": {"none": {"allowlist": []}, "p": {"extends": "none", "allowlist": ["a__*"]}}}`,
		"all that there is": `{"defaultProfile": "p", "timeout": "90s", "pausedFor": "24h", "clientPatience": {"default": "40s", "slow": "2m"},
			"risk": {"unknown": "medium", "high": {"timeout": "2m", "remember": false, "quorum": {"need": 2, "of": ["ann", "bob"], "inOrder": true}}},
			"profiles": {"base": {"denylist": ["a__drop*"]}, "p": {"extends": "base", "default": "risk", "elicitationFallback": "queue", "limits": {"cpu": "2s", "result": "8KB"},
				"rules": [{"tools": ["a__*"], "when": [{"param": "path", "matches": "^/etc/"}], "action": "deny", "hidden": ["token"], "examples": {"match": [{"tool": "a__x", "args": {"path": "/etc/passwd"}}]}},
					{"name": "n", "tools": ["b__*"], "when": "args.n > 3", "action": "manual", "risk": "critical", "requireReason": true, "check": ["args.n < 9"], "hidden": {"ssn": "[number]"}}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var spec Spec
			if err := json.Unmarshal([]byte(text), &spec); err != nil {
				t.Fatal(err)
			}
			set, problems := Parse(spec, Options{OwnFiles: []string{"/home/me/.config/codemode%2520bridge/config.json"}})
			if problems != nil {
				t.Fatal(problems)
			}
			kept, err := set.Source()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(kept), "/etc/passwd") {
				t.Errorf("examples are kept: %s", kept)
			}
			again, err := FromSource(kept)
			if err != nil {
				t.Fatal(err)
			}
			if again.Revision() != set.Revision() || again.Default().Name() != set.Default().Name() {
				t.Errorf("it is another policy: %s, was %s", again.Revision(), set.Revision())
			}
		})
	}
}

// A run that goes on is judged by the text of the template that it began with, whatever
// a later release has under that name.
func TestSourceKeepsBuiltins(t *testing.T) {
	ask := "ask"
	for name, builtin := range map[string]*ProfileSpec{
		"default":         {Default: &ask, Rules: []RuleSpec{{Tools: []string{"s__get"}, Action: &ask, Examples: &ExamplesSpec{Match: []ExampleSpec{{Args: json.RawMessage(`{"a":"shown"}`)}}}}}},
		"empty allowlist": {Allowlist: []string{}},
	} {
		before := set(t, `{"defaultProfile": "p", "profiles": {"p": {"extends": "builtin:careful@1"}}}`,
			Options{Builtins: map[string]*ProfileSpec{"careful@1": builtin, "unused@1": {}}})
		kept, err := before.Source()
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"shown", "unused"} {
			if strings.Contains(string(kept), gone) {
				t.Errorf("%s: %q is kept: %s", name, gone, kept)
			}
		}
		after, err := FromSource(kept)
		if err != nil {
			t.Fatal(err)
		}
		c := call(t, "s__do", `{}`)
		if was, is := before.Default().Decide(c), after.Default().Decide(c); is.Disposition != was.Disposition || is.Revision != was.Revision {
			t.Errorf("%s: %s %s, was %s %s", name, is.Disposition, is.Revision, was.Disposition, was.Revision)
		}
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "{", `{"evaluation": {"defaultProfile": "gone"}}`, `{"empty_allowlists": ["gone"]}`} {
		if set, err := FromSource([]byte(text)); err == nil || set != nil {
			t.Errorf("%q is a policy: %v, %v", text, set, err)
		}
	}
}
