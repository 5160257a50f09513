package mcphttp

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"codemode-bridge/bridge/mcphttptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What needs scripts is tested with the whole of package bridge, there.

// A plain is a bridge that has no scripts.
type plain struct{ *mcp.Server }

func newPlain() plain {
	return plain{mcp.NewServer(&mcp.Implementation{Name: "plain"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})}
}

func (p plain) MCP() *mcp.Server                          { return p.Server }
func (plain) Used(*mcp.ServerSession) (ran, running bool) { return false, false }
func (plain) Abandon(string, string)                      {}
func (plain) Events(store mcp.EventStore) mcp.EventStore  { return store }

// serve serves a plain bridge on a loopback port.
func serve(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	return mcphttptest.Serve(t, Handler(newPlain(), o))
}

// Other origins and other hosts, whatever the method.
func TestForeignOriginsAndHostsAreRefused(t *testing.T) {
	server := serve(t, Options{Hosts: []string{"bridge.example"}, Origins: []string{"https://app.example"}})
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
			res := mcphttptest.Post(t, method, server.URL+"/mcp", mcphttptest.Initialize, row.headers...)
			if refused := res.StatusCode == http.StatusForbidden; refused == row.allowed {
				t.Errorf("%s with %q: status %d, want allowed %v", method, row.headers, res.StatusCode, row.allowed)
			}
		}
	}
}

func TestOtherContentTypesAreRefused(t *testing.T) {
	server := serve(t, Options{})
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""} {
		req, _ := http.NewRequest("POST", server.URL+"/mcp", strings.NewReader(mcphttptest.Initialize))
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
	server := serve(t, Options{MaxBody: 1000})
	large := strings.Replace(mcphttptest.Initialize, `"t"`, `"`+strings.Repeat("t", 1000)+`"`, 1)
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", large); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", res.StatusCode)
	}
}

// A session belongs to the bearer that opened it.
func TestTokens(t *testing.T) {
	o := Options{Tokens: func() []Token {
		return []Token{{Name: "a", SHA256: sha256.Sum256([]byte("token-a"))}, {Name: "b", SHA256: sha256.Sum256([]byte("token-b"))}}
	}}
	server := serve(t, o)
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for _, headers := range [][]string{nil, bearer("wrong"), bearer(""), {"Authorization", "Basic token-a"}, bearer("token-a\x00")[:0]} {
		if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", mcphttptest.Initialize, headers...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: status %d", headers, res.StatusCode)
		}
	}
	opened := mcphttptest.Post(t, "POST", server.URL+"/mcp", mcphttptest.Initialize, bearer("token-a")...)
	id := opened.Header.Get("Mcp-Session-Id")
	if opened.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("status %d, session %q", opened.StatusCode, id)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, row := range []struct {
		token, session string
		status         int
	}{{"token-a", id, 200}, {"token-b", id, 404}, {"token-a", "guessed", 404}} {
		headers := append(bearer(row.token), "Mcp-Session-Id", row.session, "Mcp-Protocol-Version", "2025-06-18")
		if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", list, headers...); res.StatusCode != row.status {
			body, _ := io.ReadAll(res.Body)
			t.Errorf("session %q with %s: status %d %s", row.session, row.token, res.StatusCode, body)
		}
	}
	mcphttptest.Post(t, "DELETE", server.URL+"/mcp", "", append(bearer("token-a"), "Mcp-Session-Id", id)...)
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", list, append(bearer("token-a"), "Mcp-Session-Id", id)...); res.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted session: status %d", res.StatusCode)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if res := mcphttptest.Post(t, "GET", server.URL+path, ""); res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
}

func TestNoMachineHasAllSessions(t *testing.T) {
	handler := Handler(newPlain(), Options{MaxSessions: 4})
	from := func(address, body, session string) (status int, opened string) {
		r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", session)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Mcp-Session-Id")
	}
	_, first := from("192.0.2.1:4711", mcphttptest.Initialize, "")
	for i := range 10 {
		if status, _ := from(fmt.Sprintf("192.0.2.2:%d", 1000+i), mcphttptest.Initialize, ""); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if status, _ := from("192.0.2.1:4712", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, first); status != http.StatusOK {
		t.Errorf("another machine's session was taken: status %d", status)
	}
}
