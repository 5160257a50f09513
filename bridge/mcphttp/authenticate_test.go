package mcphttp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/identity"
	"codemode-bridge/bridge/mcphttptest"
	"codemode-bridge/bridge/principal"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const endpoint = "https://bridge.example/mcp"

// issuer serves an issuer of tokens, and returns what makes one for a subject.
func issuer(t *testing.T) (address string, token func(subject string, more map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := any(map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"})
		if r.URL.Path == "/keys" {
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one"}}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	sign, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server.URL, func(subject string, more map[string]any) string {
		claims := map[string]any{"iss": server.URL, "aud": endpoint, "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "scope": "mcp", "groups": []string{"of-" + subject}}
		for name, v := range more {
			claims[name] = v
		}
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := sign.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		token, err := jws.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

// asking is a bridge with one tool, which says who calls it.
func asking() plain {
	b := newPlain()
	mcp.AddTool(b.Server, &mcp.Tool{Name: "who"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		p := principal.From(ctx)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: p.Name + " in " + strings.Join(p.Groups, ",")}}}, nil, nil
	})
	return b
}

func TestAnIssuersTokens(t *testing.T) {
	address, token := issuer(t)
	var log bytes.Buffer
	o := Options{
		Logger:   slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tokens:   func() []Token { return []Token{{Name: "ci", SHA256: sha256.Sum256([]byte("static-token"))}} },
		Resource: identity.New(identity.Options{Issuer: address, Resource: endpoint, Scopes: []string{"mcp"}, Groups: "groups", Logger: slog.New(slog.DiscardHandler)}),
	}
	server := mcphttptest.Serve(t, Handler(asking(), o))
	metadata := `resource_metadata="https://bridge.example/.well-known/oauth-protected-resource/mcp", scope="mcp"`
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	ann := token("ann", nil)
	for _, row := range []struct {
		what      string
		headers   []string
		query     string
		status    int
		challenge string
	}{
		{"no token", nil, "", 401, "Bearer " + metadata},
		{"a good token", bearer(ann), "", 200, ""},
		{"the scheme in lower case", []string{"Authorization", "bearer " + ann}, "", 200, ""},
		{"a static token", bearer("static-token"), "", 200, ""},
		{"for its own host", append(bearer(ann), "Host", "bridge.example"), "", 200, ""},
		{"an unknown token", bearer("static-tokem"), "", 401, "Bearer " + metadata + `, error="invalid_token", error_description="the token is unknown, and no JWT"`},
		{"for another resource", bearer(token("ann", map[string]any{"aud": "https://other.example"})), "", 401,
			"Bearer " + metadata + `, error="invalid_token", error_description="the token was issued for another resource, not for ` + endpoint + `"`},
		{"without the scope", bearer(token("ann", map[string]any{"scope": "other"})), "", 403,
			"Bearer " + metadata + `, error="insufficient_scope", error_description="the token lacks a scope: mcp is needed"`},
		{"another scheme", []string{"Authorization", "Basic YTpi"}, "", 401, "Bearer " + metadata},
		{"no token after the scheme", []string{"Authorization", "Bearer "}, "", 401, "Bearer " + metadata},
		{"two tokens", bearer(ann + " " + ann), "", 401, "Bearer " + metadata},
		{"two tokens with a comma", bearer(ann + ",Bearer"), "", 401, "Bearer " + metadata},
		{"two headers", append(bearer(ann), bearer(ann)...), "", 400, ""},
		{"two headers, the first good", append(bearer(ann), bearer("x")...), "", 400, ""},
		{"in the address", nil, "?access_token=" + ann, 400, ""},
		{"in the address and the header", bearer(ann), "?access_token=" + ann, 400, ""},
		{"a huge token", bearer(token("ann", map[string]any{"x": strings.Repeat("x", 20<<10)})), "", 401,
			"Bearer " + metadata + `, error="invalid_token", error_description="the token is longer than 16384 bytes"`},
	} {
		res := mcphttptest.Post(t, "POST", server.URL+"/mcp"+row.query, mcphttptest.Initialize, row.headers...)
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != row.status || got != row.challenge {
			t.Errorf("%s: status %d, challenge %s; want %d, %s", row.what, res.StatusCode, got, row.status, row.challenge)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		res := mcphttptest.Post(t, "GET", server.URL+path, "")
		if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"authorization_servers":["`+address+`"]`) {
			t.Errorf("%s: status %d, %s", path, res.StatusCode, body)
		}
	}
	for _, secret := range []string{ann, "ann", "static-token", "of-ann"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if !strings.Contains(log.String(), "another resource") {
		t.Error("the log does not say why requests were refused")
	}
}

// Whatever the protocol, a handler knows its caller, and a session has one.
func TestHandlersKnowTheirCaller(t *testing.T) {
	address, token := issuer(t)
	o := Options{Resource: identity.New(identity.Options{Issuer: address, Resource: endpoint, Groups: "groups"}),
		Tokens: func() []Token { return []Token{{Name: "ci", SHA256: sha256.Sum256([]byte("static-token"))}} }}
	server := mcphttptest.Serve(t, Handler(asking(), o))
	connect := func(token, version string) *mcp.ClientSession {
		client := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil)
		s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	for _, row := range []struct{ token, want string }{
		{token("ann", nil), address + "#ann in of-ann"}, {token("bob", map[string]any{"groups": []string{"a", "b"}}), address + "#bob in a,b"}, {"static-token", "ci in "},
	} {
		got, err := connect(row.token, "").CallTool(t.Context(), &mcp.CallToolParams{Name: "who"})
		if err != nil {
			t.Fatal(err)
		}
		if text := got.Content[0].(*mcp.TextContent).Text; text != row.want {
			t.Errorf("the caller is %q, want %q", text, row.want)
		}
	}

	bearer := func(token string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + token}, more...)
	}
	opened := mcphttptest.Post(t, "POST", server.URL+"/mcp", mcphttptest.Initialize, bearer(token("ann", nil))...)
	id := opened.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("status %d, no session", opened.StatusCode)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for what, other := range map[string]string{"bob": token("bob", nil), "a static token": "static-token"} {
			res := mcphttptest.Post(t, method, server.URL+"/mcp", list, bearer(other, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18")...)
			if res.StatusCode != http.StatusNotFound {
				t.Errorf("%s of %s to a session of ann: status %d", method, what, res.StatusCode)
			}
		}
	}
	again := bearer(token("ann", map[string]any{"jti": "another token"}), "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18")
	if res := mcphttptest.Post(t, "POST", server.URL+"/mcp", list, again...); res.StatusCode != http.StatusOK {
		t.Errorf("another token of ann: status %d", res.StatusCode)
	}
}

type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}

// What a stream tells is for the bearer of a token that is in force.
func TestAStreamEndsWithItsToken(t *testing.T) {
	address, token := issuer(t)
	o := Options{Resource: identity.New(identity.Options{Issuer: address, Resource: endpoint})}
	var ends []time.Time
	handler := o
	handler.Logger, handler.Now = slog.New(slog.DiscardHandler), time.Now
	see := handler.authenticate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		end, _ := r.Context().Deadline()
		ends = append(ends, end)
	}))
	expires := time.Now().Add(10 * time.Minute).Truncate(time.Second)
	for _, method := range []string{"GET", "POST"} {
		r := httptest.NewRequest(method, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+token("ann", map[string]any{"exp": expires.Unix()}))
		see.ServeHTTP(httptest.NewRecorder(), r)
	}
	if len(ends) != 2 || ends[0].Sub(expires).Abs() > time.Minute || !ends[1].IsZero() {
		t.Errorf("a stream ends at %v, a call at %v; the token at %v", slices.Values(ends), ends, expires)
	}
}

// A client may have a new session's id before the table does: nobody else has the session
// even then.
func TestASessionThatIsNotInTheTableYet(t *testing.T) {
	o := Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, MaxSessions: 10, MaxBody: 1 << 20, IdleTimeout: time.Hour, Tokens: func() []Token {
		return []Token{{Name: "a", SHA256: sha256.Sum256([]byte("token-a"))}, {Name: "b", SHA256: sha256.Sum256([]byte("token-b"))}}
	}}
	d := newDispatcher(newPlain(), o)
	handler := o.authenticate(d)
	ask := func(method, token, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Mcp-Session-Id", session)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	id := ask("POST", "token-a", "", mcphttptest.Initialize).Header().Get("Mcp-Session-Id")
	d.sessions.mu.Lock()
	clear(d.sessions.all)
	d.sessions.mu.Unlock()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if w := ask(method, "token-b", id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); w.Code != http.StatusNotFound || w.Body.String() != "session not found\n" {
			t.Errorf("%s: %d %q", method, w.Code, w.Body)
		}
	}
	if w := ask("POST", "token-a", id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); w.Code != http.StatusOK {
		t.Errorf("its own: %d %q", w.Code, w.Body)
	}
}
