package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Where a client cannot ask, its person is told where approvers answer. One page serves
// all bridges with one configuration, and when its bridge ends another one has it.
func TestRunHasThePage(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers":   map[string]any{"utils": map[string]any{"type": "builtin", "builtin": "utils"}},
		"approvals": map[string]any{"listen": "127.0.0.1:0", "approvers": []any{json.RawMessage(approverJSON("ann", "admin", annsToken))}},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1s", "profiles": map[string]any{"p": map[string]any{
			"asklist": []string{"utils__*"}, "elicitationFallback": "queue",
		}}},
	})
	cannotAsk := func() *mcp.ClientSession {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c, err := mcp.NewClient(&mcp.Implementation{Name: "cannot ask", Version: "1"}, nil).
			Connect(ctx, &mcp.CommandTransport{Command: h.command("run", "--alone")}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, h.talk.String())
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	pageSaid := func(c *mcp.ClientSession) string {
		res, err := c.CallTool(t.Context(), callParams(`return await codemode.utils__hash({text: "x"})`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), annsToken) || strings.Contains(string(text), "#code=") {
			t.Errorf("the answer has a secret: %s", text)
		}
		at := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(text))
		if at == "" {
			t.Fatalf("the answer names no page: %s", text)
		}
		return at
	}
	there := func(at string) bool {
		res, err := http.Get(at + "/")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode < http.StatusInternalServerError
	}
	first, second := cannotAsk(), cannotAsk()
	at := pageSaid(first)
	if !there(at) {
		t.Fatal("there is no page at", at)
	}
	if other := pageSaid(second); other != at {
		t.Errorf("the second bridge says %s, the first %s", other, at)
	}
	open := h.command("approvals", "open", "--print", "--token-stdin")
	open.Stdin = strings.NewReader(annsToken + "\n")
	if link, err := open.Output(); err != nil || !strings.HasPrefix(string(link), at+"/login#code=") {
		t.Errorf("approvals open prints %s, %v\n%s", link, err, h.talk.String())
	}
	first.Close()
	eventually(t, "no other bridge has the page", func() bool {
		next := pageSaid(second)
		return next != at && there(next)
	})
	if records, err := filepath.Glob(filepath.Join(h.dir, "state", "codemode-bridge", "*-note-*.json")); err != nil || len(records) != 1 {
		t.Errorf("kept are %v, %v", records, err)
	}
}

// A client that cannot show questions is given approvers with the bridge.
func TestInstallForAClientThatCannotAsk(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}, "evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{"p": map[string]any{"default": "risk"}}}})
	dry := h.says([]int{0}, "install", "gemini", "--dry-run")
	if !strings.Contains(dry, `"elicitationFallback": "queue"`) || !strings.Contains(h.talk.String(), "cannot show questions") {
		t.Errorf("it would change\n%s\n%s", dry, h.talk.String())
	}
	if text := files(t, h.dir)["/config.json"]; strings.Contains(text, "queue") {
		t.Errorf("a dry run wrote %s", text)
	}
	var row struct{ Approver struct{ Name, Token string } }
	if err := json.Unmarshal([]byte(h.says([]int{0}, "install", "gemini", "--yes", "--json")), &row); err != nil || row.Approver.Token == "" {
		t.Fatalf("%+v, %v", row, err)
	}
	all := files(t, h.dir)
	for name, text := range all {
		if strings.Contains(text, row.Approver.Token) {
			t.Errorf("%s has the token", name)
		}
	}
	if text := all["/config.json"]; !strings.Contains(text, `"elicitationFallback": "queue"`) || !strings.Contains(text, `"desktop": true`) || !strings.Contains(text, row.Approver.Name) {
		t.Errorf("the configuration is %s", text)
	}
	h.says([]int{0}, "check")
	if again := h.says([]int{0}, "install", "gemini", "--yes", "--json"); strings.Contains(again, "token") {
		t.Errorf("a second time: %s", again)
	}
	if plain := newHome(t, map[string]any{"servers": map[string]any{}}); strings.Contains(plain.says([]int{0}, "install", "cursor", "--yes", "--json"), "token") ||
		strings.Contains(plain.says([]int{0}, "install", "zed", "--no-queue", "--yes", "--json"), "token") {
		t.Error("a client that can ask, or --no-queue, made an approver")
	}
}
