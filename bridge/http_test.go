package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// serveHTTP serves a bridge on a loopback port.
func serveHTTP(t *testing.T, b *bench, o HTTPOptions) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(b.Handler(o))
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

// Trials M1 and M2: other origins and other hosts, whatever the method.
func TestForeignOriginsAndHostsAreRefused(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), HTTPOptions{Hosts: []string{"bridge.example"}, Origins: []string{"https://app.example"}})
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	own := "127.0.0.1:" + port
	for _, row := range []struct {
		headers []string
		allowed bool
	}{
		{nil, true},
		{[]string{"Origin", "http://" + own}, true},
		{[]string{"Origin", "https://app.example"}, true},
		{[]string{"Host", "localhost:" + port}, true},
		{[]string{"Host", "LOCALHOST:" + port}, true},
		{[]string{"Host", "[::1]:" + port}, true},
		{[]string{"Host", "[::1]"}, true},
		{[]string{"Host", "bridge.example"}, true},
		{[]string{"Host", "bridge.example:8443"}, true},
		{[]string{"Sec-Fetch-Site", "none"}, true},
		{[]string{"Origin", "http://evil.example"}, false},
		{[]string{"Origin", "null"}, false},
		{[]string{"Origin", "http://127.0.0.1:1"}, false},
		{[]string{"Origin", "http://127.0.0.1.evil.example:" + port}, false},
		{[]string{"Origin", "http://" + own + "/path"}, false},
		{[]string{"Origin", "file://"}, false},
		{[]string{"Origin", "http://" + own, "Origin", "http://evil.example"}, false},
		{[]string{"Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Sec-Fetch-Site", "same-site"}, false},
		{[]string{"Host", "evil.example"}, false},
		{[]string{"Host", "evil.example:" + port}, false},
		{[]string{"Host", "localhost.:" + port}, false},
		{[]string{"Host", "127.0.0.1.evil.example"}, false},
		{[]string{"Host", "127.1:" + port}, false},
		{[]string{"Host", "0.0.0.0:" + port}, false},
		{[]string{"Host", "localhost:http"}, false},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
			res := post(t, method, server.URL+"/mcp", initialize, row.headers...)
			if refused := res.StatusCode == http.StatusForbidden; refused == row.allowed {
				t.Errorf("%s with %q: status %d, want allowed %v", method, row.headers, res.StatusCode, row.allowed)
			}
		}
	}
}

// Trial M3.
func TestOtherContentTypesAreRefused(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), HTTPOptions{})
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""} {
		req, _ := http.NewRequest("POST", server.URL+"/mcp", strings.NewReader(initialize))
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header["Content-Type"] = []string{kind}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("content type %q: status %d", kind, res.StatusCode)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), HTTPOptions{MaxBody: 1000})
	large := strings.Replace(initialize, `"t"`, `"`+strings.Repeat("t", 1000)+`"`, 1)
	if res := post(t, "POST", server.URL+"/mcp", large); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", res.StatusCode)
	}
}

// Trials M5 and M11: a session belongs to the bearer that opened it.
func TestTokens(t *testing.T) {
	o := HTTPOptions{Tokens: func() []Token {
		return []Token{{Name: "a", SHA256: sha256.Sum256([]byte("token-a"))}, {Name: "b", SHA256: sha256.Sum256([]byte("token-b"))}}
	}}
	server := serveHTTP(t, newBench(t, profiles.Spec{}), o)
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for _, headers := range [][]string{nil, bearer("wrong"), bearer(""), {"Authorization", "Basic token-a"}, bearer("token-a\x00")[:0]} {
		if res := post(t, "POST", server.URL+"/mcp", initialize, headers...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: status %d", headers, res.StatusCode)
		}
	}
	opened := post(t, "POST", server.URL+"/mcp", initialize, bearer("token-a")...)
	id := opened.Header.Get("Mcp-Session-Id")
	if opened.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("status %d, session %q", opened.StatusCode, id)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, row := range []struct {
		token, session string
		status         int
	}{{"token-a", id, 200}, {"token-b", id, 403}, {"token-a", "guessed", 404}} {
		headers := append(bearer(row.token), "Mcp-Session-Id", row.session, "Mcp-Protocol-Version", "2025-06-18")
		if res := post(t, "POST", server.URL+"/mcp", list, headers...); res.StatusCode != row.status {
			body, _ := io.ReadAll(res.Body)
			t.Errorf("session %q with %s: status %d %s", row.session, row.token, res.StatusCode, body)
		}
	}
	post(t, "DELETE", server.URL+"/mcp", "", append(bearer("token-a"), "Mcp-Session-Id", id)...)
	if res := post(t, "POST", server.URL+"/mcp", list, append(bearer("token-a"), "Mcp-Session-Id", id)...); res.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted session: status %d", res.StatusCode)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if res := post(t, "GET", server.URL+path, ""); res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
}

// Trial M4: the body says which protocol a request speaks.
func TestBothProtocolsOnOneEndpoint(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), HTTPOptions{})
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
	server := serveHTTP(t, newBench(t, profiles.Spec{}), HTTPOptions{})
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
	server := serveHTTP(t, b, HTTPOptions{})
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
	server := serveHTTP(t, b, HTTPOptions{})
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
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions)
}

// Trial M26: what has more than one reading is refused.
func TestBodiesHaveOneReading(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	server := serveHTTP(t, b, HTTPOptions{})
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
	server := serveHTTP(t, b, HTTPOptions{})
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
