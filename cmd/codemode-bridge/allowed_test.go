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

// kiroHome is a home with a configuration that has no servers, in which Kiro has one, with a
// tool that it calls without asking.
func kiroHome(t *testing.T) (h *home, before string) {
	t.Helper()
	h = newHome(t, map[string]any{
		"servers": map[string]any{}, "evaluation": map[string]any{
			"defaultProfile": "coding", "profiles": map[string]any{"coding": map[string]any{"extends": "builtin:coding@1"}}, "risk": map[string]any{"unknown": "medium"},
		},
	})
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"web": newToolFile(t).server(map[string]any{"autoApprove": []string{"fetch", "gone"}})}})
	if err != nil {
		t.Fatal(err)
	}
	h.put(".kiro/settings/mcp.json", string(servers))
	return h, h.read("config.json")
}

func (h *home) put(name, text string) {
	h.t.Helper()
	file := filepath.Join(h.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, filepath.FromSlash(name)))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

const kiroRule = `"reason": "you had allowed it in Kiro"`

// install --take-over brings over what the client called without asking only if the person
// says so; until then it names the way, which works.
func TestTakeOverBringsOverWhatIsAllowed(t *testing.T) {
	t.Parallel()
	h, _ := kiroHome(t)
	h.says([]int{2}, "install", "kiro", "--allowed")
	h.says([]int{0}, "install", "kiro", "--take-over", "--no-queue", "--yes")
	if text := h.read("config.json"); !strings.Contains(text, `"web"`) || strings.Contains(text, "allowed in") {
		t.Fatalf("the server did not move alone:\n%s", text)
	}
	for _, want := range []string{"what Kiro allowed for the tools of web does nothing any more", "uninstall kiro", "install kiro --take-over --allowed"} {
		if !strings.Contains(h.talk.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, h.talk.String())
		}
	}
	if strings.Contains(h.talk.String(), "connecting to") {
		t.Errorf("a server was started though nobody could agree:\n%s", h.talk.String())
	}
	h.says([]int{0}, "uninstall", "kiro", "--yes")

	var row struct{ Allowed any }
	if err := json.Unmarshal([]byte(h.says([]int{0}, "install", "kiro", "--take-over", "--no-queue", "--allowed", "--yes", "--json")), &row); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{map[string]any{"client": "Kiro", "tools": []any{"web__fetch"}, "taken": true}}, row.Allowed); diff != "" {
		t.Errorf("with --allowed (-want +got):\n%s", diff)
	}
	if text := h.read("config.json"); !strings.Contains(text, kiroRule) {
		t.Errorf("the configuration lacks %s:\n%s", kiroRule, text)
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

// A server that does not start moves, and nothing of it is offered.
func TestTakeOverOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	h, _ := kiroHome(t)
	h.put(".kiro/settings/mcp.json", `{"mcpServers": {"web": {"command": "no-such-program", "autoApprove": ["fetch"]}}}`)
	h.says([]int{0}, "install", "kiro", "--take-over", "--no-queue", "--allowed", "--yes")
	if text := h.read("config.json"); !strings.Contains(text, `"no-such-program"`) || strings.Contains(text, "allowed in") {
		t.Errorf("the configuration is\n%s", text)
	}
	for _, want := range []string{"of web nothing is offered: ", "does nothing any more"} {
		if !strings.Contains(h.talk.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, h.talk.String())
		}
	}
}
