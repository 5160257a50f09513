package profiles

import (
	"encoding/json"
	"testing"
)

// Of a call with values that nobody knows, the strictest and the loosest decision are the same if they do not matter.
func TestBetween(t *testing.T) {
	masked := Masked{}
	meaning := func(m Meaning) *Meaning {
		m.Accepted, m.Effects = true, []string{"read"}
		return &m
	}
	for _, row := range []struct {
		name, profile string
		call          Call
		missing       Gaps
		strict, loose Disposition
	}{
		{"nothing is missing", `{"default": "ask"}`, Call{}, Gaps{}, Ask, Ask},
		{"nothing looks at it", `{"default": "allow", "rules": [{"tools": ["*"], "when": "args.b == 1", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked, "b": json.Number("1")}}, Gaps{}, Ask, Ask},
		{"an ask looks at it", `{"default": "allow", "rules": [{"tools": ["*"], "when": "args.a == 'x'", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Ask, Allow},
		{"an allow looks at it", `{"default": "deny", "rules": [{"tools": ["*"], "when": "args.a.startsWith('x')", "action": "allow"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Deny, Allow},
		{"it is in an object", `{"default": "allow", "rules": [{"tools": ["*"], "when": [{"param": "a.b", "matches": "x"}], "action": "deny"}]}`,
			Call{Args: map[string]any{"a": map[string]any{"b": masked}}}, Gaps{}, Deny, Allow},
		{"that it is there is known", `{"default": "allow", "rules": [{"tools": ["*"], "when": "has(args.a) && size(args) == 1", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Ask, Ask},
		{"a loop looks at it", `{"default": "allow", "rules": [{"tools": ["*"], "when": "args.exists(k, args[k] == 'x')", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Ask, Allow},
		{"what could not be decided anyway", `{"default": "allow", "rules": [{"tools": ["*"], "when": "args.c == 'x'", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Ask, Ask},
		{"a stricter list decides", `{"denylist": ["s__*"], "rules": [{"tools": ["*"], "when": "args.a == 'x'", "action": "ask"}]}`,
			Call{Args: map[string]any{"a": masked}}, Gaps{}, Deny, Deny},
		{"its role is not known then", `{"default": "ask", "rules": [{"known": true, "effects": ["read"], "action": "allow"}]}`,
			Call{Args: map[string]any{"path": masked}, Meaning: meaning(Meaning{Where: "workspace", Unknown: []string{"path"}})}, Gaps{}, Ask, Allow},
		{"nobody knows the role of another", `{"default": "ask", "rules": [{"known": true, "effects": ["read"], "action": "allow"}]}`,
			Call{Args: map[string]any{"path": masked}, Meaning: meaning(Meaning{Where: "workspace", Unknown: []string{"other", "path"}})}, Gaps{}, Ask, Ask},
		{"it may be a secret that leaves", `{"default": "ask", "rules": [{"known": true, "effects": ["read"], "action": "allow"}]}`,
			Call{Args: map[string]any{"q": masked}, Meaning: meaning(Meaning{Where: "remote", Net: "fixed"})}, Gaps{}, Ask, Allow},
		{"it stays here", `{"default": "ask", "rules": [{"known": true, "effects": ["read"], "action": "allow"}]}`,
			Call{Args: map[string]any{"q": masked}, Meaning: meaning(Meaning{Where: "local"})}, Gaps{}, Allow, Allow},
		{"the risk of an unknown value", `{"default": "risk"}`,
			Call{Args: map[string]any{"path": masked}, Meaning: meaning(Meaning{Where: "workspace", Unknown: []string{"path"}})}, Gaps{}, Ask, Allow},
		{"arguments are missing", `{"default": "allow", "rules": [{"tools": ["*"], "when": "has(args.a)", "action": "ask"}]}`, Call{Args: map[string]any{}}, Gaps{Args: true}, Ask, Allow},
		{"an unknown tool", `{"default": "risk"}`, Call{}, Gaps{Tool: true}, Ask, Allow},
		{"an unknown tool that is named", `{"default": "risk", "denylist": ["s__t"]}`, Call{}, Gaps{Tool: true}, Deny, Deny},
		{"nobody looked for content", `{"default": "allow", "flows": [{"from": "hr", "to": "external", "action": "deny", "by": "content"}]}`,
			Call{Flow: &FlowFacts{Labels: Labels{Has: []string{"external"}}}}, Gaps{Content: true}, Deny, Allow},
		{"it goes nowhere", `{"default": "allow", "flows": [{"from": "hr", "to": "external", "action": "deny", "by": "content"}]}`,
			Call{Flow: &FlowFacts{}}, Gaps{Content: true}, Allow, Allow},
		{"an expression about content", `{"default": "allow", "rules": [{"tools": ["*"], "when": "'hr' in flow.content", "action": "ask"}]}`, Call{Flow: &FlowFacts{}}, Gaps{Content: true}, Ask, Allow},
		{"nobody knows what is written", `{"default": "allow", "rules": [{"tools": ["*"], "when": "!flow.written", "action": "ask"}]}`, Call{Flow: &FlowFacts{}}, Gaps{Written: true}, Ask, Allow},
		{"what another server answered", `{"default": "ask", "rules": [{"known": true, "effects": ["read"], "action": "allow"}]}`,
			Call{Meaning: meaning(Meaning{Where: "remote", Net: "fixed"})}, Gaps{Carries: true}, Ask, Allow},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p ProfileSpec
			if err := json.Unmarshal([]byte(row.profile), &p); err != nil {
				t.Fatal(err)
			}
			set, problems := Parse(Spec{Profiles: map[string]*ProfileSpec{"p": &p}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			policy, _ := set.Profile("p")
			row.call.Server, row.call.Tool = "s", "t"
			strict, loose := policy.Between(row.call, row.missing)
			if strict.Disposition != row.strict || loose.Disposition != row.loose {
				t.Errorf("between %s and %s, want %s and %s\n%v\n%v", strict.Disposition, loose.Disposition, row.strict, row.loose, strict.Reasons, loose.Reasons)
			}
		})
	}
}
