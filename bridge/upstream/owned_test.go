//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// counting makes a server whose one tool counts its calls, from the beginning
// with each connection.
func counting(context.Context, *slog.Logger) (*mcp.Server, error) {
	var n atomic.Int32
	s := mcp.NewServer(&mcp.Implementation{Name: "counting"}, nil)
	s.AddTool(&mcp.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("call ", n.Add(1))}}}, nil
	})
	return s, nil
}

// A member is a client of a session.
type member struct {
	fakeClient
	session string
}

func (m *member) Session() string { return m.session }

func TestPerSession(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	spec := Spec{Name: "fake", InProcess: counting, PerSession: true}
	s.Apply([]Spec{spec})
	connected(t, s)
	counts := func(what string, ctx context.Context, want int) {
		t.Helper()
		got, err := s.Call(ctx, "fake", "", "count", nil)
		if err != nil || !strings.Contains(string(got), fmt.Sprintf(`"call %d"`, want)) {
			t.Errorf("%s: got %s, %v, want call %d", what, got, err, want)
		}
	}
	of := func(session string) context.Context { return WithClient(t.Context(), &member{session: session}) }
	counts("a session", of("a"), 1)
	counts("the same", of("a"), 2)
	counts("another", of("b"), 1)
	counts("none", t.Context(), 1)
	if st := s.Status(); len(st) != 1 || st[0].Sessions != 2 || st[0].Tools != 1 {
		t.Errorf("status %+v", st)
	}
	s.EndSession("a")
	counts("after its end", of("a"), 1)
	counts("which was not the other's", of("b"), 2)

	spec.Limits.Timeout = spec.Limits.timeout() + 1
	s.Apply([]Spec{spec})
	counts("a changed spec", of("b"), 1)
	if st := s.Status(); st[0].Sessions != 1 {
		t.Errorf("with the changed spec: %+v", st)
	}
	spec.PerSession = false
	s.Apply([]Spec{spec})
	counts("no longer per session", of("a"), 1)
	counts("but shared", of("b"), 2)
}

func TestPerSessionHasABound(t *testing.T) {
	s := New(Options{})
	s.Apply([]Spec{{Name: "fake", InProcess: counting, PerSession: true}})
	connected(t, s)
	for i := range maxOwned + 1 {
		_, err := s.Call(WithClient(t.Context(), &member{session: fmt.Sprint(i)}), "fake", "", "count", nil)
		var e *Error
		full := errors.As(err, &e) && e.Kind == Unavailable && !e.Sent && strings.Contains(e.Error(), "64 sessions")
		if full != (i == maxOwned) || err != nil && !full {
			t.Fatalf("session %d: %v", i, err)
		}
	}
	s.Close()
	if _, err := s.Call(WithClient(t.Context(), &member{session: "0"}), "fake", "", "count", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
