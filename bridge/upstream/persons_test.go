//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A somebody is a client that says whose it is.
type somebody struct {
	fakeClient
	name    string
	unknown bool
}

func (s *somebody) Person() (string, bool) { return s.name, !s.unknown }

func as(ctx context.Context, name string) context.Context {
	return WithClient(ctx, &somebody{name: name})
}

// A listing authorizes the list of tools, and each person.
type listing struct {
	*account
	*people
}

// people are the accounts of a test, by name.
type people struct {
	mu  sync.Mutex
	all map[string]*account
}

func (p *people) Account(_ context.Context, name string) (Authorizer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.all[name]; a != nil {
		return a, nil
	}
	return nil, loginNeeded("connect an account at https://page.example.com/accounts")
}

func (p *people) set(name string, a *account) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = a
}

// whose is a server that says with whose token it was asked, and the sessions it has seen.
func whose(t *testing.T) (url string, tokens func() []string) {
	var mu sync.Mutex
	var seen []string
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s := mcp.NewServer(&mcp.Implementation{Name: "whose"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "whoami"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			now := strings.TrimPrefix(req.Extra.Header.Get("Authorization"), "Bearer ")
			mu.Lock()
			seen = append(seen, now)
			mu.Unlock()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("session of %s, asked by %s", token, now)}}}, nil, nil
		})
		return s
	}, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, func() []string { mu.Lock(); defer mu.Unlock(); return seen }
}

func TestEachPersonHasTheirOwnConnection(t *testing.T) {
	url, tokens := whose(t)
	all := &people{all: map[string]*account{"ann": {token: "of-ann"}, "bob": {token: "of-bob"}}}
	s := New(Options{})
	defer s.Close()
	s.Apply([]Spec{{Name: "fake", URL: url, Auth: listing{&account{token: "of-the-list"}, all}}})
	connected(t, s)
	says := func(ctx context.Context, want string) {
		t.Helper()
		got, err := s.Call(ctx, "fake", "", "whoami", nil)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	var each sync.WaitGroup
	for _, name := range []string{"ann", "bob"} {
		for range 8 {
			each.Go(func() { says(as(t.Context(), name), "session of of-"+name+", asked by of-"+name+`"`) })
		}
	}
	each.Wait()
	if st := s.Status()[0]; st.Sessions != 2 {
		t.Errorf("%d connections of persons, want 2", st.Sessions)
	}

	refused := func(what string, ctx context.Context, want string) {
		t.Helper()
		before := len(tokens())
		got, err := s.Call(ctx, "fake", "", "whoami", nil)
		var failure *Error
		if !errors.As(err, &failure) || failure.Sent || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v, want an error with %q that nothing was sent for", what, got, err, want)
		}
		if _, err := s.Read(ctx, "fake", "", "resources/list", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, reading: %v", what, err)
		}
		if n := len(tokens()); n != before {
			t.Errorf("%s: the server was asked with %v", what, tokens()[before:])
		}
	}
	refused("nobody's call", t.Context(), "not known who makes this call")
	refused("a client that does not say whose it is", WithClient(t.Context(), &fakeClient{}), "not known who makes this call")
	refused("somebody without an account", as(t.Context(), "eve"), "https://page.example.com/accounts")
	refused("the local user without an account", as(t.Context(), ""), "https://page.example.com/accounts")
	for _, token := range tokens() {
		if token == "of-the-list" {
			t.Error("a call was made with the account that lists the tools")
		}
	}

	// Another login is another connection, and none is none.
	all.set("ann", &account{token: "of-ann-again"})
	says(as(t.Context(), "ann"), "session of of-ann-again, asked by of-ann-again")
	all.set("ann", nil)
	refused("ann, who has disconnected", as(t.Context(), "ann"), "https://page.example.com/accounts")
	if st := s.Status()[0]; st.Sessions != 1 {
		t.Errorf("%d connections of persons, want bob's alone", st.Sessions)
	}
	says(as(t.Context(), "bob"), "asked by of-bob")
}

func TestPersonsConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &people{all: map[string]*account{}}
		s := New(Options{})
		spec := Spec{Name: "fake", InProcess: counting, Auth: listing{&account{}, all}}
		s.Apply([]Spec{spec})
		connected(t, s)
		for i := range maxOwned + 3 {
			name := fmt.Sprint("p", i)
			all.set(name, &account{token: name})
			if got, err := s.Call(as(t.Context(), name), "fake", "", "count", nil); err != nil || !strings.Contains(string(got), `"call 1"`) {
				t.Fatalf("%s: %s, %v", name, got, err)
			}
		}
		if st := s.Status()[0]; st.Sessions != maxOwned {
			t.Errorf("%d connections, want %d: the ones unused for the longest time make room", st.Sessions, maxOwned)
		}
		last := fmt.Sprint("p", maxOwned+2)
		if got, err := s.Call(as(t.Context(), last), "fake", "", "count", nil); err != nil || !strings.Contains(string(got), `"call 2"`) {
			t.Errorf("the one used last made room: %s, %v", got, err)
		}
		idle := func() (n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, own := range s.owned {
				if own.status().State == Idle {
					n++
				}
			}
			return n
		}
		time.Sleep(personIdle + personIdle/10)
		synctest.Wait()
		if n := idle(); n != maxOwned {
			t.Errorf("%d connections were closed after some minutes, want all %d", n, maxOwned)
		}
		if got, err := s.Call(as(t.Context(), last), "fake", "", "count", nil); err != nil || !strings.Contains(string(got), `"call 1"`) {
			t.Errorf("after that: %s, %v, want a new connection", got, err)
		}
		s.Close()
	})
}
