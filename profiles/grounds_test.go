package profiles

import "testing"

// What was approved stays approved when a rule is added that only allows, and not when
// anything else changes.
func TestGrounds(t *testing.T) {
	t.Parallel()
	of := func(rules string, more ...string) Decision {
		text := `{"defaultProfile": "p", "profiles": {"p": {"default": "ask", "rules": [` + rules + `]}}}`
		if len(more) > 0 {
			text = more[0]
		}
		return set(t, text).Default().Decide(call(t, "s__x", `{}`))
	}
	before := of("")
	if before.Grounds == "" {
		t.Fatal("a decision has no grounds")
	}
	for text, same := range map[string]bool{
		`{"tools": ["s__y"], "action": "allow"}`: true,
		`{"name": "n", "effects": ["write"], "where": ["workspace"], "action": "allow", "reason": "we all do"}`: true,
		`{"tools": ["s__y"], "action": "allow", "examples": {"match": [{}]}}`:                                   true,
		`{"tools": ["s__y"], "action": "notify"}`:                                                               false,
		`{"tools": ["s__y"], "action": "allow", "risk": "low"}`:                                                 false,
		`{"tools": ["s__y"], "action": "allow", "repeatable": true}`:                                            false,
		`{"tools": ["s__y"], "action": "allow", "check": ["true"]}`:                                             false,
		`{"tools": ["s__y"], "action": "allow", "hidden": ["k"]}`:                                               false,
		`{"tools": ["s__y"], "action": "allow", "display": {"maxArray": 3}}`:                                    false,
		`{"tools": ["s__y"], "action": "ask"}`:                                                                  false,
		`{"tools": ["s__y"], "remember": false}`:                                                                false,
	} {
		after := of(text)
		if (after.Grounds == before.Grounds) != same || after.Revision == before.Revision {
			t.Errorf("with %s the grounds are the same: %v, want %v", text, after.Grounds == before.Grounds, same)
		}
	}
	if of("", `{"defaultProfile": "p", "timeout": "9s", "profiles": {"p": {"default": "ask"}}}`).Grounds == before.Grounds {
		t.Error("another setting, and the same grounds")
	}
	if of("", `{"defaultProfile": "p", "profiles": {"p": {"default": "ask", "allowlist": ["*"]}}}`).Grounds == before.Grounds {
		t.Error("an allowlist, and the same grounds") // it denies what is not on it
	}
}
