//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"codemode-bridge/bridge/trace"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call that passes its trace on has it in its _meta, and nothing else of whoever calls; one
// that does not has none.
func TestTraceIsInMeta(t *testing.T) {
	mirror := func(context.Context, *slog.Logger) (*mcp.Server, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "mirror"}, nil)
		s.AddTool(&mcp.Tool{Name: "meta", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := json.Marshal(map[string]any{"parent": req.Params.Meta["traceparent"], "state": req.Params.Meta["tracestate"], "baggage": req.Params.Meta["baggage"]})
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, err
		})
		return s, nil
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, spec := range sdkServers(t, mirror) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{}, spec)
			connected(t, s)
			for _, row := range []struct {
				ctx  context.Context
				want string
			}{
				{t.Context(), `{\"baggage\":null,\"parent\":null,\"state\":null}`},
				{trace.From(t.Context(), map[string]any{"traceparent": parent, "baggage": "x=1"}, nil), `{\"baggage\":null,\"parent\":null,\"state\":null}`},
				{trace.Passed(t.Context(), trace.Parse(parent, "")), `{\"baggage\":null,\"parent\":\"` + parent + `\",\"state\":null}`},
				{trace.Passed(WithClient(t.Context(), &fakeClient{answer: agree}), trace.Parse(parent, "v=1")), `{\"baggage\":null,\"parent\":\"` + parent + `\",\"state\":\"v=1\"}`},
			} {
				got, err := s.Call(row.ctx, "fake", "", "meta", nil)
				if err != nil || !strings.Contains(string(got), row.want) {
					t.Errorf("the server sees %s, %v, want %s", got, err, row.want)
				}
			}
		})
	}
}
