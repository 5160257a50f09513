package main_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/otlptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A collector gets the spans of a run, in the client's trace, which the audit log names;
// what the script sent and got is in none of them.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	for protocol, at := range map[string]string{"http/protobuf": c.HTTP, "grpc": c.GRPC} {
		id := strings.Repeat("ab", 16)
		if protocol == "grpc" {
			id = strings.Repeat("cd", 16)
		}
		h := newHome(t, map[string]any{"servers": map[string]any{"time": map[string]any{"builtin": "time"}, "utils": map[string]any{"builtin": "utils"}}},
			"OTEL_EXPORTER_OTLP_ENDPOINT="+at, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol)
		bridge := h.connect("--alone")
		res, err := bridge.CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": "00-" + id + "-00f067aa0ba902b7-01"}, Name: "eval",
			Arguments: map[string]any{"code": `return await codemode.utils__base64_encode({text: "canary"})`}})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v, %v", protocol, res, err)
		}
		if err := bridge.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
		var names []string
		for _, s := range c.Spans(t, 4) {
			if hex.EncodeToString(s.TraceId) != id {
				continue
			}
			names = append(names, s.Name)
			if text := s.String(); strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
				t.Errorf("a span has what the script sent: %s", text)
			}
		}
		slices.Sort(names)
		if want := []string{"decide", "preview", "tools/call base64_encode", "tools/call eval"}; !slices.Equal(names, want) {
			t.Errorf("%s: the spans are %q, want %q\n%s", protocol, names, want, h.talk.String())
		}
		if n := h.count("--filter", "trace_id="+id); n < 4 {
			t.Errorf("%s: %d records have the trace", protocol, n)
		}
	}
}

// A collector that is away, or that no address names, costs nothing but the spans.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{"http://127.0.0.1:1": "traces cannot be exported, and are dropped", "collector:4317": "runs are not traced"} {
		h := newHome(t, map[string]any{"servers": map[string]any{"time": map[string]any{"builtin": "time"}}, "log": map[string]any{"level": "warn", "format": "json"}}, "OTEL_EXPORTER_OTLP_ENDPOINT="+at)
		bridge := h.connect("--alone")
		if answer := bridge.call(t, "eval", map[string]any{"code": "return 6 * 7"}); !strings.Contains(answer, "42") {
			t.Errorf("it answers %s", answer)
		}
		if err := bridge.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
		if said := h.talk.String(); strings.Count(said, want) != 1 {
			t.Errorf("%s: it says\n%s", at, said)
		}
	}
}

// metaServer serves a tool, and keeps the _meta of its calls.
func metaServer(t *testing.T) (url string, calls func() []mcp.Meta) {
	t.Helper()
	var mu sync.Mutex
	var kept []mcp.Meta
	server := mcp.NewServer(&mcp.Implementation{Name: "meta", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, r.Params.Meta)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(site.Close)
	t.Cleanup(site.CloseClientConnections)
	return site.URL, func() []mcp.Meta {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(kept)
	}
}

// A server learns which span its call is, unless it is labelled untrusted or the
// configuration says otherwise. Nothing else of what the client says goes on.
func TestTracesArePassedOn(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	c, calls, servers := otlptest.New(t), map[string]func() []mcp.Meta{}, map[string]any{}
	for name, more := range map[string]map[string]any{
		"plain": {}, "untrusted": {"labels": []string{"untrusted"}},
		"by_tool":      {"tools": map[string]any{"labels": map[string]any{"re*": []string{"untrusted"}, "*": []string{}}}},
		"all_the_same": {"labels": []string{"untrusted"}, "trace": true}, "never": {"trace": false},
	} {
		more["url"], calls[name] = metaServer(t)
		servers[name] = more
	}
	h := newHome(t, map[string]any{"servers": servers}, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.HTTP)
	bridge := h.connect("--alone")
	code := ""
	for name := range servers {
		code += "await codemode." + name + "__read({});"
	}
	res, err := bridge.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code},
		Meta: mcp.Meta{"traceparent": "00-" + id + "-00f067aa0ba902b7-01", "tracestate": "v=1", "baggage": "who=ann"}})
	if err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
	if err := bridge.Close(); err != nil {
		t.Logf("closing: %v", err)
	}
	spans := map[string]string{} // of the calls, by server
	for _, s := range c.Spans(t, 2+2*len(servers)) {
		for _, a := range s.Attributes {
			if a.Key == "codemode.server" && s.Name == "tools/call read" {
				spans[a.Value.GetStringValue()] = "00-" + hex.EncodeToString(s.TraceId) + "-" + hex.EncodeToString(s.SpanId) + "-01"
			}
		}
	}
	for name, of := range calls {
		got := of()
		if len(got) != 1 {
			t.Errorf("%s has had %d calls", name, len(got))
			continue
		}
		told, _ := got[0]["traceparent"].(string)
		state, _ := got[0]["tracestate"].(string)
		want, wantState := "", ""
		if name == "plain" || name == "all_the_same" {
			want, wantState = spans[name], "v=1"
		}
		if told != want || state != wantState || !strings.HasPrefix(spans[name], "00-"+id) {
			t.Errorf("%s is told %q and %q, want %q and %q; its span is %q", name, told, state, want, wantState, spans[name])
		}
		if text, _ := json.Marshal(got[0]); strings.Contains(string(text), "ann") {
			t.Errorf("%s is told %s", name, text)
		}
	}
}

// A run that is begun through the page's API belongs to the trace of the request's headers.
func TestTracesOfTheAPI(t *testing.T) {
	t.Parallel()
	const id = "fedcba9876543210fedcba9876543210"
	c := otlptest.New(t)
	b := &heldBench{commandLine: newCommandLine(t, heldConfigText(loosePolicy))}
	b.env, b.serving.file = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.HTTP}, b.commandLine.file
	b.start()
	header := http.Header{"Authorization": {"Bearer " + annsToken}, "Traceparent": {"00-" + id + "-00f067aa0ba902b7-01"}, "Tracestate": {"v=1"}}
	res, text := request(t, http.DefaultClient, "POST", b.page+"/api/runs?wait=30s", header, map[string]any{"code": `return (await codemode.utils__base64_encode({text: "x"})).text`})
	if res.StatusCode != http.StatusOK || !strings.Contains(text, "eA==") {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	b.stop()
	var names []string
	for _, s := range c.Spans(t, 4) {
		if names = append(names, s.Name); hex.EncodeToString(s.TraceId) != id || s.TraceState != "v=1" {
			t.Errorf("%s is in the trace %x, %q", s.Name, s.TraceId, s.TraceState)
		}
		if s.Name == "tools/call eval" && hex.EncodeToString(s.ParentSpanId) != "00f067aa0ba902b7" {
			t.Errorf("the run is below %x", s.ParentSpanId)
		}
	}
	slices.Sort(names)
	if want := []string{"decide", "preview", "tools/call base64_encode", "tools/call eval"}; !slices.Equal(names, want) {
		t.Errorf("the spans are %q, want %q", names, want)
	}
	if rows := b.does("", "audit", "query", "--filter", "trace_id="+id, "--json"); !strings.Contains(rows, "run_started") || !strings.Contains(rows, "run_ended") {
		t.Errorf("the log has of the trace\n%s", rows)
	}
}
