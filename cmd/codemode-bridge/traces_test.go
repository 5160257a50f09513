package main_test

import (
	"encoding/hex"
	"slices"
	"strings"
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
