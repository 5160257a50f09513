package setup

import (
	"slices"
	"strings"
	"testing"
)

func TestPromote(t *testing.T) {
	const text = `{
  // ours
  "evaluation": {
    "profiles": {
      "work": {
        "asklist": ["a__*"], "denylist": ["b__*"], "default": "ask",
        "observe": ["asklist", "denylist", "default"],
        "rules": [
          { "name": "big", "tools": ["c__*"], "action": "ask", "observe": true }, // much
          { "tools": ["d__*"], "action": "deny",
            "observe": true
          },
          { "tools": ["e__*"], "action": "deny", "observe": false }
        ],
        "flows": [{ "from": "private", "to": "external", "action": "ask", "by": "content", "observe": true }]
      },
      "one": { "asklist": ["a__*"], "observe": ["asklist"] },
      "whole": { "asklist": ["a__*"], "observe": true },
      "plain": {}
    }
  }
}
`
	for _, row := range []struct {
		profile, what string
		promoted      []string
		lost, without string // what stands in the text before, and after no more
	}{
		{"work", "big", []string{"big"}, `"action": "ask", "observe": true }, // much`, `"action": "ask" }, // much`},
		{"work", "rules/0", []string{"big"}, `"action": "ask", "observe": true }, // much`, `"action": "ask" }, // much`},
		{"work", "rules/1", []string{"rules/1"}, "\"action\": \"deny\",\n            \"observe\": true\n          }", "\"action\": \"deny\"\n          }"},
		{"work", "flows/0", []string{"flows/0"}, `"by": "content", "observe": true }`, `"by": "content" }`},
		{"work", "denylist", []string{"denylist"}, `["asklist", "denylist", "default"]`, `["asklist", "default"]`},
		{"one", "asklist", []string{"asklist"}, `"one": { "asklist": ["a__*"], "observe": ["asklist"] }`, `"one": { "asklist": ["a__*"] }`},
		{"whole", "", []string{"the whole profile"}, `"whole": { "asklist": ["a__*"], "observe": true }`, `"whole": { "asklist": ["a__*"] }`},
	} {
		next, promoted, err := Promote([]byte(text), row.profile, row.what)
		if want := strings.Replace(text, row.lost, row.without, 1); err != nil || string(next) != want || !slices.Equal(promoted, row.promoted) {
			t.Errorf("%s %s: %q, %v\n%s\nwant\n%s", row.profile, row.what, promoted, err, next, want)
		}
	}
	next, promoted, err := Promote([]byte(text), "work", "")
	if err != nil || strings.Count(string(next), "observe") != 3 || !slices.Equal(promoted, []string{"big", "rules/1", "flows/0", "asklist", "denylist", "default"}) {
		t.Errorf("all of it: %q, %v\n%s", promoted, err, next)
	}
	for name, want := range map[string]string{
		"plain ":        "nothing of the profile plain is only observed",
		"plain big":     "big of the profile plain is not only observed; nothing is",
		"one denylist":  "denylist of the profile one is not only observed; what is: asklist",
		"whole asklist": "the profile whole is observed as a whole, so asklist cannot be promoted by itself: without a name, the whole profile is",
		"work rules/2":  "rules/2 of the profile work is not only observed; what is: big, rules/1, flows/0, asklist, denylist, default",
		"gone ":         "the profile gone is not written in this file",
	} {
		profile, what, _ := strings.Cut(name, " ")
		if _, _, err := Promote([]byte(text), profile, what); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
