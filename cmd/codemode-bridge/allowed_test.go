package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// init brings over what a person has allowed their client only if they say so, and a
// call of that is not asked about any more.
func TestInitBringsOverWhatIsAllowed(t *testing.T) {
	t.Parallel()
	tools := newToolFile(t)
	h := newHome(t, map[string]any{})
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"web": tools.server(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.dir, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mcp.json": string(servers), "permissions.json": `{"mcpAllowlist": ["web:fet*"]}`} {
		if err := os.WriteFile(filepath.Join(h.dir, ".cursor", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.config = filepath.Join(h.dir, "first.json")
	begin := func(flags ...string) any {
		var made struct{ Allowed any }
		if err := json.Unmarshal([]byte(h.says([]int{0}, append([]string{"init", "--yes", "--json", "--force"}, flags...)...)), &made); err != nil {
			t.Fatal(err)
		}
		return made.Allowed
	}
	offer := func(taken bool) any {
		return []any{map[string]any{"client": "Cursor", "tools": []any{"web__fetch"}, "taken": taken}}
	}
	if diff := cmp.Diff(offer(false), begin()); diff != "" {
		t.Errorf("without --allowed (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(h.config); err != nil || strings.Contains(string(text), "allowed in") {
		t.Fatalf("something was brought over silently, %v:\n%s", err, text)
	}
	if diff := cmp.Diff(offer(true), begin("--allowed")); diff != "" {
		t.Errorf("with --allowed (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	rule := `{ "name": "allowed in Cursor", "tools": ["web__fetch"], "known": false, "action": "allow", "reason": "you had allowed it in Cursor" }`
	if !strings.Contains(string(text), rule) {
		t.Errorf("the configuration lacks %s:\n%s", rule, text)
	}

	c := h.connect()
	c.sees(t, callFetch, "did fetch")
	if asked := c.questions(); len(asked) != 0 {
		t.Errorf("what was brought over is asked about: %s", asked)
	}
	c.sees(t, `return await codemode.web__reload({})`, "did reload")
	if asked := c.questions(); len(asked) != 1 {
		t.Errorf("%d questions about another tool", len(asked))
	}
}
