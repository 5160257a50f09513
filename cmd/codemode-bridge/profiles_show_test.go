package main_test

import (
	"strings"
	"testing"
)

// A profile that extends one of the program's is shown with that one's rules and flows.
func TestShowProfileOfATemplate(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers":    map[string]any{"time": map[string]any{"builtin": "time"}},
		"evaluation": map[string]any{"defaultProfile": "work", "profiles": map[string]any{"work": map[string]any{"extends": "builtin:trifecta@1"}}},
	})
	out := h.says([]int{0}, "profiles", "show", "work")
	for _, want := range []string{"extends builtin:trifecta@1", "rule the way out", "by content  (builtin:trifecta@1)"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
