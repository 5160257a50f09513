//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// library makes a server with n resources, one template and one prompt, listed
// in pages of seven.
func library(n int) func(context.Context, *slog.Logger) (*mcp.Server, error) {
	return func(context.Context, *slog.Logger) (*mcp.Server, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "library"}, &mcp.ServerOptions{PageSize: 7})
		for i := range n {
			s.AddResource(&mcp.Resource{URI: fmt.Sprintf("book://%02d", i), Name: "book"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "once upon a time"}}}, nil
			})
		}
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "shelf://{name}", Name: "shelf"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		})
		s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "greet " + req.Params.Arguments["who"]}}}}, nil
		})
		return s, nil
	}
}

// sdkServers are the ways in which a server of the SDK can be reached, in both
// eras.
func sdkServers(t *testing.T, make func(context.Context, *slog.Logger) (*mcp.Server, error)) map[string]Spec {
	t.Helper()
	made := func(r *http.Request) *mcp.Server {
		s, err := make(r.Context(), slog.Default())
		if err != nil {
			t.Error(err)
		}
		return s
	}
	modern := httptest.NewServer(mcp.NewStreamableHTTPHandler(made, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	legacy := httptest.NewServer(mcp.NewStreamableHTTPHandler(made, nil))
	t.Cleanup(modern.Close)
	t.Cleanup(legacy.Close)
	return map[string]Spec{
		"modern in process": {Name: "fake", InProcess: make, Protocol: Modern},
		"legacy in process": {Name: "fake", InProcess: make, Protocol: Legacy},
		"modern http":       {Name: "fake", URL: modern.URL, Protocol: Modern},
		"legacy http":       {Name: "fake", URL: legacy.URL, Protocol: Legacy},
	}
}

func TestRead(t *testing.T) {
	for name, spec := range sdkServers(t, library(20)) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{}, spec)
			connected(t, s)
			for _, row := range []struct{ method, args, want string }{
				{"resources/list", `{}`, `"uri":"book://19"`},
				{"resources/templates/list", `{}`, `"uriTemplate":"shelf://{name}"`},
				{"resources/read", `{"uri":"book://03"}`, `once upon a time`},
				{"prompts/list", `{}`, `"name":"greet"`},
				{"prompts/get", `{"name":"greet","arguments":{"who":"you"}}`, `greet you`},
			} {
				got, err := s.Read(t.Context(), "fake", "", row.method, json.RawMessage(row.args))
				if err != nil || !json.Valid(got) || !strings.Contains(string(got), row.want) {
					t.Errorf("%s: got %s, %v", row.method, got, err)
				}
				if offers := s.Offers(row.method); len(offers) != 1 {
					t.Errorf("%s is offered by %v", row.method, offers)
				}
			}
			all, err := s.Read(t.Context(), "fake", "", "resources/list", nil)
			if n := strings.Count(string(all), "book://"); n != 20 || err != nil {
				t.Errorf("%d resources listed, %v", n, err)
			}
			_, err = s.Read(t.Context(), "fake", "", "resources/read", json.RawMessage(`{"uri":"shelf://none"}`))
			if e := new(Error); !errors.As(err, &e) || e.Kind != BadReply || e.Tool != "resources/read" || e.Server != "fake" {
				t.Errorf("a resource that is not there: %v", err)
			}
		})
	}
}

func TestReadIsRefused(t *testing.T) {
	bare := func(context.Context, *slog.Logger) (*mcp.Server, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "bare"}, nil)
		s.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
		return s, nil
	}
	s := open(t, Options{},
		Spec{Name: "bare", InProcess: bare},
		Spec{Name: "shut", InProcess: library(1), Deny: []string{"resources/*"}},
		Spec{Name: "some", InProcess: library(1), Allow: []string{"prompts/*"}},
		Spec{Name: "off", InProcess: library(1), Disabled: true})
	connected := func() bool { return len(s.Offers("prompts/list")) == 2 }
	ready(t, s)
	if !connected() {
		t.Fatalf("servers are %+v", s.Status())
	}
	if got := s.Offers("resources/list"); len(got) != 0 {
		t.Errorf("resources are offered by %v", got)
	}
	for _, row := range []struct {
		server, method string
		kind           ErrorKind
		want           string
	}{
		{"bare", "resources/list", UnknownTool, "the server has no resources"},
		{"bare", "prompts/get", UnknownTool, "the server has no prompts"},
		{"shut", "resources/read", UnknownTool, "left out"},
		{"some", "resources/list", UnknownTool, "left out"},
		{"some", "tools/call", UnknownTool, "not to be asked"},
		{"off", "resources/list", Unavailable, "disabled"},
		{"none", "resources/list", UnknownServer, "no server of this name"},
	} {
		_, err := s.Read(t.Context(), row.server, "", row.method, json.RawMessage(`{}`))
		e := new(Error)
		if !errors.As(err, &e) || e.Kind != row.kind || e.Sent || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s of %s: %v", row.method, row.server, err)
		}
	}
}

// What a server lists without an end is cut, and says so.
func TestReadCutsEndlessLists(t *testing.T) {
	small := Spec{Name: "fake", InProcess: library(200), Limits: Limits{MaxReply: 4 << 10}}
	s := open(t, Options{}, small)
	connected(t, s)
	got, err := s.Read(t.Context(), "fake", "", "resources/list", nil)
	if err != nil || !strings.HasSuffix(string(got), `],"cut":true}`) || len(got) > 5<<10 || !json.Valid(got) {
		t.Errorf("got %d bytes, %v: ...%s", len(got), err, got[max(0, len(got)-60):])
	}
}

// Nothing is sent to a server that was meant for another one of its name.
func TestAServerThatIsAnother(t *testing.T) {
	s := open(t, Options{}, Spec{Name: "fake", Identity: "staging", InProcess: library(1)})
	connected(t, s)
	for identity, want := range map[string]bool{"": true, "staging": true, "production": false} {
		_, err := s.Read(t.Context(), "fake", identity, "resources/list", nil)
		if want && err == nil {
			continue
		}
		var failure *Error
		if want || !errors.As(err, &failure) {
			t.Errorf("read from %q: %v", identity, err)
			continue
		}
		refusal := Error{Server: "fake", Tool: "resources/list", Kind: UnknownServer, Err: errReplaced}
		if diff := cmp.Diff(refusal, *failure, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("read from %q (-want +got):\n%s", identity, diff)
		}
	}
	s.Apply([]Spec{{Name: "fake", Identity: "production", InProcess: library(1)}})
	if _, err := s.Call(t.Context(), "fake", "staging", "any", nil); err == nil || !strings.Contains(err.Error(), "names another server") {
		t.Errorf("called after the change: %v", err)
	}
}
