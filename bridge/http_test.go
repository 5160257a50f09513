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
	"codemode-bridge/bridge/mcphttptest"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHTTP serves a bridge on a loopback port.
func serveHTTP(t *testing.T, b *bench, o mcphttp.Options) *httptest.Server {
	t.Helper()
	o.Logger, o.Now = b.o.Logger, b.o.Now
	return mcphttptest.Serve(t, mcphttp.Handler(b, o))
}

// The body says which protocol a request speaks.
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
	res := mcphttptest.Post(t, "POST", server.URL+"/mcp", modern, "Mcp-Protocol-Version", "2025-06-18")
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
	res := mcphttptest.Post(t, "POST", server.URL+"/mcp", strings.Replace(mcphttptest.Initialize, "2025-06-18", "2026-07-28", 1))
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte(`"protocolVersion":"2025-11-25"`)) {
		t.Errorf("status %d: %s, %v", res.StatusCode, body, err)
	}
}

// What belongs to one session reaches no other.
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
	deadline := time.Now().Add(3 * time.Minute)
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

// What has more than one reading is refused.
func TestBodiesHaveOneReading(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	server := serveHTTP(t, b, mcphttp.Options{})
	for name, body := range map[string]string{
		"two messages":   mcphttptest.Initialize + mcphttptest.Initialize,
		"not UTF-8":      strings.Replace(mcphttptest.Initialize, `"t"`, "\"\xff\"", 1),
		"fraction as id": strings.Replace(mcphttptest.Initialize, `"id":1`, `"id":1.5`, 1),
		"half a message": mcphttptest.Initialize[:40],
	} {
		if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", body); res.StatusCode != http.StatusBadRequest {
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
	id := mcphttptest.Post(t, "POST", server.URL+"/mcp", mcphttptest.Initialize).Header.Get("Mcp-Session-Id")
	headers := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18"}
	mcphttptest.Post(t, "POST", server.URL+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
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
	mcphttptest.Post(t, "DELETE", server.URL+"/mcp", "", headers...)
	<-ended
}
