package main_test

//lint:file-ignore SA1019 logging is deprecated by the newest protocol; clients of older ones use it

// Texts for a model or a client say where something is, but never let anybody in.

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialog has no room for a long argument. Over stdio, where there is no page, it names the
// command that prints the argument, which works.
func TestDialogSaysWhereAllOfItIs(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers":    map[string]any{"fake": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")},
		"evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{"p": map[string]any{"asklist": []string{"fake__*"}}}},
	})
	c := h.connect("--alone")
	c.call(t, "eval", map[string]any{"code": `return await codemode.fake__write({text: "word ".repeat(180) + "in the middle" + " word".repeat(180)})`})
	if len(c.asked) != 1 {
		t.Fatalf("asked %d times", len(c.asked))
	}
	var shown struct{ Message string }
	if err := json.Unmarshal([]byte(c.asked[0]), &shown); err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(" means no\\. All of it: `codemode-bridge approvals show (\\S+) --config (\\S+)`\\.$").FindStringSubmatch(shown.Message)
	if command == nil || command[2] != h.config || strings.Contains(shown.Message, "in the middle") || !strings.Contains(shown.Message, "1,813 characters: ") {
		t.Fatalf("the dialog is\n%s", shown.Message)
	}
	if got := h.says([]int{0}, "approvals", "show", command[1]); !strings.Contains(got, "in the middle") {
		t.Errorf("the command prints\n%s", got)
	}
}

// While the owner's link is unused, a model gets every text that a client gets: of tools,
// the status, progress, logs, a dialog, a denial, a failure, a pause. None contains a
// secret, or a link with more than an address, and no word in them lets anybody in.
func TestTextsCarryNoWayIn(t *testing.T) {
	t.Parallel()
	const serverSecret, hookSecret = "canary-server-51c09e7b", "canary-hook-51c09e7b"
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{
		"surface": "full", "servers": map[string]any{"own": fakeServer(t, effects, serverSecret)},
		"approvals": map[string]any{"listen": "127.0.0.1:0", "webhooks": []any{map[string]any{"url": "http://127.0.0.1:1/hook?key=" + hookSecret, "secret": hookSecret}}},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1s", "profiles": map[string]any{"p": map[string]any{
			"asklist": []string{"own__*"}, "elicitationFallback": "queue", "timeout": "10m",
			"rules": []any{map[string]any{"tools": []string{"own__fail"}, "when": "has(args.never)", "action": "deny", "reason": "never"}},
		}}},
	})
	var bridge serving
	bridge.start(t, h.command("serve", "--listen", "127.0.0.1:0"))
	page := bridge.page
	_, code, ok := strings.Cut(bridge.link, "/login#code=")
	if !ok {
		t.Fatalf("no link for the owner: %q", bridge.link)
	}

	var mu sync.Mutex
	var texts []string
	tell := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, string(text))
	}
	all := func() string { mu.Lock(); defer mu.Unlock(); return strings.Join(texts, "\n") }
	connect := func(o mcp.ClientOptions) *mcp.ClientSession {
		o.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) { tell(r.Params) }
		o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { tell(r.Params) }
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &o).
			Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: bridge.endpoint}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
		tell(c.InitializeResult())
		return c
	}
	call := func(c *mcp.ClientSession, tool string, args map[string]any) {
		params := &mcp.CallToolParams{Name: tool, Arguments: args}
		params.SetProgressToken("p")
		res, err := c.CallTool(t.Context(), params)
		if err != nil {
			tell(err.Error())
			return
		}
		tell(res)
	}

	asks := connect(mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		tell(r.Params)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "no", "reason": "wrong address"}}, nil
	}})
	call(asks, "eval", map[string]any{"code": `return await codemode.own__write({a: "x".repeat(3000)})`})
	call(asks, "eval", map[string]any{"code": `return await codemode.own__fail({never: 1})`})
	call(asks, "eval", map[string]any{"code": `throw new Error("failed")`})
	call(asks, "eval_resume", map[string]any{"run": "rnone"})

	waits := connect(mcp.ClientOptions{})
	call(waits, "eval", map[string]any{"code": `return await codemode.own__write({a: 1})`})
	for tool, err := range waits.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tell(tool)
	}
	call(waits, "codemode_status", map[string]any{})
	call(waits, "search_tools", map[string]any{"query": "write"})

	got := all()
	for _, part := range []string{"ToolCallDeniedError", "never", "wrong address", "HIGH: its ", `"paused"`, `approve_at`, page, "All of it: `" + page + "/r/", "there is no run"} {
		if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), part) {
			t.Errorf("%q is nowhere, so this test does not see what it should:\n%s", part, got)
		}
	}
	for what, secret := range map[string]string{"the owner's code": code, "a server's variable": serverSecret, "a webhook's secret": hookSecret} {
		if strings.Contains(got, secret) {
			t.Errorf("%s stands in a text:\n%s", what, got)
		}
	}
	if odd := regexp.MustCompile(`https?://[^\s"\x60\\<>]*[?#@][^\s"\x60\\<>]*|[?#&]?\b(code|token|secret|key)=[^\s"]+`).FindAllString(got, -1); odd != nil {
		t.Errorf("links with more than a place: %q", odd)
	}

	enters := func(word string) bool {
		for _, kind := range []string{"code", "token"} {
			body, err := json.Marshal(map[string]string{kind: word})
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.Post(page+"/api/login", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return true
			}
		}
		return false
	}
	tried := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]{8,}`).FindAllString(got, -1) {
		if !tried[word] && enters(word) {
			t.Errorf("%q lets in", word)
		}
		tried[word] = true
	}
	if len(tried) < 50 {
		t.Errorf("only %d words were tried", len(tried))
	}
	if n := countEffects(t, effects); n != 0 {
		t.Errorf("%d effects", n)
	}
	if !enters(code) { // or the test would not have noticed the code in a text
		t.Error("the owner's code lets nobody in")
	}
}
