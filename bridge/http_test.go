package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// serveHTTP serves a bridge on a loopback port.
func serveHTTP(t *testing.T, b *bench, o mcphttp.Options) *httptest.Server {
	t.Helper()
	o.Logger, o.Now = b.o.Logger, b.o.Now
	server := httptest.NewServer(mcphttp.Handler(b, o))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// post sends a body to /mcp with headers given as pairs, "Host" among them.
func post(t *testing.T, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			req.Host = headers[i+1]
		case "Accept":
			req.Header.Set("Accept", headers[i+1])
		default:
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// Trial M4: the body says which protocol a request speaks.
func TestBothProtocolsOnOneEndpoint(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), mcphttp.Options{})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil)
		c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if got := c.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("speaks %s, want %s", got, version)
		}
		if got := eval(t, c, `return json(await codemode.a__echo({v: 1}))`); got != `{"v":1}` {
			t.Errorf("%s: eval says %s", version, got)
		}
		c.Close()
	}
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	res := post(t, "POST", server.URL+"/mcp", modern, "Mcp-Protocol-Version", "2025-06-18")
	if res.StatusCode == http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		if bytes.Contains(body, []byte(`"tools"`)) {
			t.Errorf("header and body disagree, and the answer is %s", body)
		}
	}
}

// An initialize that asks for the stateless protocol is answered with the
// newest that has sessions.
func TestInitializeIsClamped(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), mcphttp.Options{})
	res := post(t, "POST", server.URL+"/mcp", strings.Replace(initialize, "2025-06-18", "2026-07-28", 1))
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte(`"protocolVersion":"2025-11-25"`)) {
		t.Errorf("status %d: %s, %v", res.StatusCode, body, err)
	}
}

// Trial M6, in small: what belongs to one session reaches no other.
func TestSessionsAreApart(t *testing.T) {
	const sessions, evals = 20, 5
	b := newBench(t, profiles.Spec{})
	server := serveHTTP(t, b, mcphttp.Options{})
	var group sync.WaitGroup
	for i := range sessions {
		group.Go(func() {
			canary := fmt.Sprintf("canary-%d-", i)
			c, err := mcp.NewClient(&mcp.Implementation{Name: canary}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for j := range evals {
				code := fmt.Sprintf(`globalThis.seen = (globalThis.seen || 0) + 1; console.log(%q); const r = await codemode.a__echo({c: %q}); return [r, seen]`, canary, canary)
				res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}})
				if err != nil {
					t.Error(err)
					return
				}
				all, _ := json.Marshal(res)
				if strings.Count(string(all), "canary-") != strings.Count(string(all), canary) || !strings.Contains(string(all), canary) || !strings.Contains(string(all), `,1]`) {
					t.Errorf("session %d, eval %d: %s", i, j, all)
				}
			}
		})
	}
	group.Wait()
}

// A stateless request leaves nothing behind, and its client going away stops
// its run.
func TestStatelessRequestEndsWithItsClient(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	reached, ended := make(chan struct{}), make(chan struct{})
	b.up.tools["a__wait"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(reached)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}
	server := serveHTTP(t, b, mcphttp.Options{})
	c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": "await codemode.a__wait({})"}})
	<-ended
	if got := eval(t, c, `return Array.from({length: 30000}, (_, i) => "row " + i)`); strings.Contains(got, `"handle"`) {
		t.Errorf("a stateless request was given a handle: %s", got)
	}
	deadline := time.Now().Add(20 * time.Second)
	for b.sessionsHeld() > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := b.sessionsHeld(); n > 0 {
		t.Errorf("%d sessions are held after their requests", n)
	}
}

func (b *bench) sessionsHeld() int {
	b.roster.mu.Lock()
	defer b.roster.mu.Unlock()
	return len(b.roster.sessions)
}

// Trial M26: what has more than one reading is refused.
func TestBodiesHaveOneReading(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	server := serveHTTP(t, b, mcphttp.Options{})
	for name, body := range map[string]string{
		"two messages":   initialize + initialize,
		"not UTF-8":      strings.Replace(initialize, `"t"`, "\"\xff\"", 1),
		"fraction as id": strings.Replace(initialize, `"id":1`, `"id":1.5`, 1),
		"half a message": initialize[:40],
	} {
		if res := post(t, "POST", server.URL+"/mcp", body); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
	}
	c := b.connect(t, nil)
	for _, args := range []string{`{"code":"return 1","code":"return 2"}`, `{"Code":"return 1"}`, `{"code":"return 1","input":{"a":1,"a":2}}`, `[1]`, `"x"`} {
		out, failed := call(t, c, "eval", json.RawMessage(args))
		if !failed {
			t.Errorf("%s is answered %s", args, out)
		}
	}
}

func TestDeletedSessionStopsItsRuns(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	reached, ended := make(chan struct{}), make(chan error, 1)
	b.up.tools["a__wait"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(reached)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", ctx.Err()
	}
	server := serveHTTP(t, b, mcphttp.Options{})
	id := post(t, "POST", server.URL+"/mcp", initialize).Header.Get("Mcp-Session-Id")
	headers := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18"}
	post(t, "POST", server.URL+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
	go func() {
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"await codemode.a__wait({})"}}}`
		req, _ := http.NewRequest("POST", server.URL+"/mcp", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}()
	<-reached
	post(t, "DELETE", server.URL+"/mcp", "", headers...)
	<-ended
}
