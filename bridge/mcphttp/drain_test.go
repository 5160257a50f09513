package mcphttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"codemode-bridge/bridge/mcphttptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A bridge that drains begins nothing, in a way that a load balancer may act on, and lets
// what is under way end.
func TestDrain(t *testing.T) {
	var draining atomic.Bool
	begun, may := make(chan struct{}), make(chan struct{})
	b := newPlain()
	mcp.AddTool(b.Server, &mcp.Tool{Name: "eval"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		close(begun)
		<-may
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it ended"}}}, nil, nil
	})
	server := mcphttptest.Serve(t, Handler(b, Options{Draining: draining.Load}))
	open := func() []string {
		return []string{"Mcp-Session-Id", mcphttptest.Post(t, "POST", server.URL+"/mcp", mcphttptest.Initialize).Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18"}
	}
	busy, idle := open(), open()
	const call, ping = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{}}}`, `{"jsonrpc":"2.0","id":3,"method":"ping"}`
	const stateless = `{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	answered := make(chan string)
	go func() {
		res := mcphttptest.Post(t, "POST", server.URL+"/mcp", call, busy...)
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		answered <- string(text)
	}()
	<-begun
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	for _, drains := range []bool{false, true} {
		draining.Store(drains)
		for _, row := range []struct {
			what, method, path, body string
			headers                  []string
			before, after            int
		}{
			{"readiness", "GET", "/readyz", "", nil, 200, 503},
			{"health", "GET", "/healthz", "", nil, 200, 200},
			{"a stateless request", "POST", "/mcp", stateless, modern, 200, 503},
			{"a new session", "POST", "/mcp", mcphttptest.Initialize, nil, 200, 503},
			{"a ping of a session", "POST", "/mcp", ping, idle, 200, 200},
			{"a list of tools in a session", "POST", "/mcp", `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, busy, 200, 200},
		} {
			want := row.before
			if drains {
				want = row.after
			}
			res := mcphttptest.Post(t, row.method, server.URL+row.path, row.body, row.headers...)
			if res.StatusCode != want || res.Close != (want == http.StatusServiceUnavailable) && row.body != "" {
				t.Errorf("draining %t: %s: status %d, want %d; the connection ends: %t", drains, row.what, res.StatusCode, want, res.Close)
			}
			if drains && want == http.StatusServiceUnavailable && row.method == "POST" {
				text, _ := io.ReadAll(res.Body)
				if res.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), `"code":-32000,"message":"this bridge is ending`) {
					t.Errorf("%s: the refusal is %s, with %v", row.what, text, res.Header)
				}
			}
		}
	}
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", call, busy...); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a call in a session where one is under way: status %d", res.StatusCode)
	}
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", call, "Mcp-Session-Id", "web1.OTHER"); res.StatusCode != http.StatusNotFound {
		t.Errorf("a session that is not known: status %d", res.StatusCode)
	}
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", call, idle...); res.StatusCode != http.StatusNotFound {
		t.Errorf("a call in an idle session: status %d; the client should open another one", res.StatusCode)
	}
	close(may)
	if text := <-answered; !strings.Contains(text, "it ended") {
		t.Errorf("what was under way is answered %s", text)
	}
}
