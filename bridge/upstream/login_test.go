//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An account is an Authorizer and the server that believes it.
type account struct {
	mu      sync.Mutex
	token   string // what it has; empty: it needs a login
	next    string // what a renewal brings; empty: none
	good    string // what the server takes
	scope   bool   // the server wants more rights for calls
	away    bool   // tokens cannot be had for a while
	refused int
	server  *mcp.Server
}

type loginNeeded string

func (e loginNeeded) Error() string { return string(e) }
func (e loginNeeded) NeedsLogin()   {}

func (a *account) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *account) Token(context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.away:
		return "", errors.New("no token can be had: canary-token")
	case a.token == "":
		return "", loginNeeded("it needs a login")
	}
	return a.token, nil
}

func (a *account) Refused(_ context.Context, token string, status int, _ http.Header) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused++
	switch {
	case status == http.StatusForbidden:
		return false, loginNeeded("it needs a login with more rights")
	case token != a.token:
		return true, nil
	case a.next != "":
		a.token, a.next = a.next, ""
		return true, nil
	}
	a.token = ""
	return false, loginNeeded("it needs a login again, not " + token)
}

func (a *account) Ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token != ""
}

func (a *account) Hide(text string) string {
	return strings.ReplaceAll(text, "canary-token", "[hidden]")
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	a.mu.Lock()
	good, scope := r.Header.Get("Authorization") == "Bearer "+a.good, a.scope
	a.mu.Unlock()
	switch {
	case !good:
		http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	case scope && r.Header.Get("Mcp-Method") == "tools/call":
		http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusForbidden)
	default:
		inner.ServeHTTP(w, r)
	}
}

func newAccount(t *testing.T, a *account) Spec {
	a.server = mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	a.server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return a.server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, r, inner) }))
	t.Cleanup(web.Close)
	return Spec{Name: "fake", URL: web.URL, Auth: a}
}

func wantState(t *testing.T, s *Set, state State, why string) {
	t.Helper()
	if one := s.Status()[0]; one.State != state || one.Err != why {
		t.Errorf("the server is %s (%s), want %s (%s)", one.State, one.Err, state, why)
	}
}

// A server that needs a login says so, is not asked again until there is one, and
// then connects by itself.
func TestNeedsLogin(t *testing.T) {
	a := &account{good: "canary-token-1"}
	s := open(t, Options{}, newAccount(t, a))
	ready(t, s)
	wantState(t, s, NeedsLogin, "it needs a login")
	if err := failure(t, s, "echo", "{}"); err.Kind != Unavailable || err.Sent || err.Error() != "calling echo of server fake: it needs a login" {
		t.Errorf("the call says %v", err)
	}
	a.do(func() { a.token = "canary-token-0" }) // one that the server does not take
	s.Reconnect("fake")
	eventually(t, "refused", func() bool {
		return s.Status()[0].Err == "it needs a login again, not [hidden]-0" && s.Status()[0].State == NeedsLogin
	})
	if a.refused != 1 {
		t.Errorf("it was refused %d times", a.refused)
	}
	a.do(func() { a.token = "canary-token-1" })
	if got := call(t, s, "echo", "{}"); !strings.Contains(got, "done") { // the call notices
		t.Errorf("the answer is %s", got)
	}
	// The end of the login in the middle of a session.
	a.do(func() { a.token, a.good = "", "canary-token-2" })
	if err := failure(t, s, "echo", "{}"); err.Sent || !strings.Contains(err.Error(), "it needs a login") {
		t.Errorf("the call says %v", err)
	}
	eventually(t, "parked", func() bool { return s.Status()[0].State == NeedsLogin })
	a.do(func() { a.token = "canary-token-2" })
	eventually(t, "connected without a call", func() bool { return s.Status()[0].State == Connected })
}

// What the server does not take is renewed in the middle of a call, which is sent
// again; where it cannot be had for a while, the session goes on.
func TestTokenIsRenewed(t *testing.T) {
	a := &account{good: "canary-token-1", token: "canary-token-1"}
	s := open(t, Options{}, newAccount(t, a))
	connected(t, s)
	a.do(func() { a.good, a.next = "canary-token-2", "canary-token-2" })
	if got := call(t, s, "echo", "{}"); !strings.Contains(got, "done") {
		t.Errorf("the answer is %s", got)
	}
	since := s.Status()[0].Since
	a.do(func() { a.away = true })
	if err := failure(t, s, "echo", "{}"); err.Sent || !strings.Contains(err.Error(), "no token can be had: [hidden]") {
		t.Errorf("the call says %v", err)
	}
	a.do(func() { a.away = false })
	call(t, s, "echo", "{}")
	if s.Status()[0].Since != since {
		t.Error("the session did not go on")
	}
}

// A call that wants more rights fails alone.
func TestMoreRights(t *testing.T) {
	a := &account{good: "canary-token-1", token: "canary-token-1"}
	s := open(t, Options{}, newAccount(t, a))
	connected(t, s)
	since := s.Status()[0].Since
	a.do(func() { a.scope = true })
	if err := failure(t, s, "echo", "{}"); err.Kind != Unavailable || err.Sent || err.Error() != "calling echo of server fake: it needs a login with more rights" {
		t.Errorf("the call says %v", err)
	}
	a.do(func() { a.scope = false })
	call(t, s, "echo", "{}")
	wantState(t, s, Connected, "")
	if s.Status()[0].Since != since {
		t.Error("the session did not go on")
	}
}

// Specs with different Authorizers are different, and are not looked into.
func TestAuthorizerIsCompared(t *testing.T) {
	a := &account{good: "canary-token-1", token: "canary-token-1"}
	spec := newAccount(t, a)
	s := open(t, Options{}, spec)
	connected(t, s)
	since := s.Status()[0].Since
	s.Apply([]Spec{spec})
	wantState(t, s, Connected, "")
	if s.Status()[0].Since != since {
		t.Error("the same spec starts anew")
	}
	spec.Auth = &account{token: "canary-token-1"}
	s.Apply([]Spec{spec})
	connected(t, s)
	if s.Status()[0].Since == since {
		t.Error("another login changes nothing")
	}
}

// A program that gets a login by itself writes a link and waits: the link is shown,
// nobody waits for the server, and it is connected once somebody has logged in.
func TestProgramWaitsForLogin(t *testing.T) {
	answer := filepath.Join(t.TempDir(), "answer")
	for _, protocol := range []Protocol{Auto, Legacy} {
		t.Run(string(protocol), func(t *testing.T) {
			os.Remove(answer)
			spec := script{Start: "login:" + answer}.stdio(t)
			spec.Protocol = protocol
			s := open(t, Options{}, spec)
			ready(t, s)
			const why = "its program waits for a login: open " + fakeLogin + " in a browser"
			wantState(t, s, Connecting, why)
			if got := s.Status()[0].Login; got != fakeLogin {
				t.Errorf("the link is %q", got)
			}
			if err := failure(t, s, "exact", "{}"); err.Kind != Unavailable || err.Sent || !tap.NeedsLogin(err) || !strings.Contains(err.Error(), why) {
				t.Errorf("the call says %v", err)
			}
			if err := os.WriteFile(answer, []byte("yes"), 0o600); err != nil {
				t.Fatal(err)
			}
			if st := is(t, s, Connected); st.Login != "" || st.Err != "" {
				t.Errorf("connected, it is %+v", st)
			}
			if got := call(t, s, "exact", ""); got != exact {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Nobody logs in: the program is not started again until a call wants it, which
// would open a browser each time.
func TestProgramMissesLogin(t *testing.T) {
	answer, log := filepath.Join(t.TempDir(), "answer"), filepath.Join(t.TempDir(), "log")
	s := open(t, Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond}, script{Start: "login:" + answer, Log: log}.stdio(t))
	ready(t, s)
	if err := os.WriteFile(answer, []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := is(t, s, Parked)
	if !strings.HasPrefix(st.Err, "nobody made the login that it waited for; the process ended: exit status 1") || !strings.Contains(st.Err, "a call after ") || st.Login != "" || st.Failures != 1 {
		t.Errorf("the server is %+v", st)
	}
	if err := os.WriteFile(answer, []byte("yes"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "called", func() bool {
		got, err := s.Call(t.Context(), "fake", "", "exact", nil)
		return err == nil && string(got) == exact
	})
}
