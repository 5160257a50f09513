package telemetry

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/otlptest"
	"codemode-bridge/bridge/trace"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

func TestWanted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env   map[string]string
		want  string
		wrong string
	}{
		"nothing":                     {},
		"a collector":                 {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, want: "http/protobuf"},
		"a collector of traces":       {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/v1/traces"}, want: "http/protobuf"},
		"gRPC":                        {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: "grpc"},
		"of traces alone":             {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, want: "grpc"},
		"the usual collector":         {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want: "http/protobuf"},
		"none":                        {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		"disabled":                    {env: map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		"an exporter that is not one": {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, wrong: `OTEL_TRACES_EXPORTER is "zipkin"`},
		"a protocol that is not one":  {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, wrong: `there are http/protobuf and grpc`},
		"no address":                  {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, wrong: "no address"},
	} {
		got, err := Wanted(func(name string) string { return row.env[name] })
		if got != row.want || (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// open begins an export under an environment, which the SDK reads itself.
func open(t *testing.T, log *bytes.Buffer, env map[string]string) (*Export, *trace.Tracer) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	e, tracer, err := Open(t.Context(), Options{Getenv: func(name string) string { return env[name] }, Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(log, nil)), Passes: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return e, tracer
}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// What a collector gets, over both protocols.
func TestExport(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			c := otlptest.New(t)
			at := map[string]string{"http/protobuf": c.HTTP, "grpc": c.GRPC}[protocol]
			e, tracer := open(t, new(bytes.Buffer), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"})
			ctx := trace.From(t.Context(), map[string]any{"traceparent": parent, "tracestate": "v=1"}, nil)
			r := tracer.Begin(ctx, trace.Origin{Run: "r1", Session: "s1", First: trace.Parse("00-"+strings.Repeat("c", 32)+"-00f067aa0ba902b7-01", "")})
			r.Previewed()
			_, end := r.Step()(t.Context(), trace.Call, "notes", "read", 7)
			end("failed")
			r.End("done")
			e.Close()
			spans := c.Spans(t, 3)
			named := map[string]*otlp.Span{}
			for _, s := range spans {
				named[s.Name] = s
			}
			eval, call := named["tools/call eval"], named["tools/call read"]
			if len(spans) != 3 || eval == nil || call == nil || named["preview"] == nil {
				t.Fatalf("the spans are %v", slices.Sorted(maps.Keys(named)))
			}
			if got := hex.EncodeToString(eval.TraceId) + "-" + hex.EncodeToString(eval.ParentSpanId); got != parent[3:52] || eval.TraceState != "v=1" {
				t.Errorf("the parent is %s, %q", got, eval.TraceState)
			}
			if !bytes.Equal(call.ParentSpanId, eval.SpanId) || !bytes.Equal(call.TraceId, eval.TraceId) || eval.Kind != otlp.Span_SPAN_KIND_SERVER || call.Kind != otlp.Span_SPAN_KIND_CLIENT {
				t.Errorf("the spans are %v and %v", eval, call)
			}
			if len(eval.Links) != 1 || hex.EncodeToString(eval.Links[0].TraceId) != strings.Repeat("c", 32) {
				t.Errorf("the links are %v", eval.Links)
			}
			if call.Status.Code != otlp.Status_STATUS_CODE_ERROR || call.Status.Message != "" || eval.Status.Code == otlp.Status_STATUS_CODE_ERROR {
				t.Errorf("they ended with %v and %v", call.Status, eval.Status)
			}
			got := map[string]string{}
			for _, a := range call.Attributes {
				if got[a.Key] = a.Value.GetStringValue(); got[a.Key] == "" {
					got[a.Key] = a.Value.String()
				}
			}
			for key, want := range map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "read", "codemode.server": "notes", "codemode.outcome": "failed", "error.type": "tool_error", "codemode.call": "int_value:7"} {
				if got[key] != want {
					t.Errorf("%s is %q, want %q", key, got[key], want)
				}
			}
			if c.About("service.name") != "codemode-bridge" || c.About("service.version") != "1.2.3" || c.About("deployment.environment.name") != "test" {
				t.Errorf("the resource is %q %q %q", c.About("service.name"), c.About("service.version"), c.About("deployment.environment.name"))
			}
		})
	}
}

// A collector that takes nothing costs the spans: that is said once, and nobody waits.
func TestCollectorThatRefuses(t *testing.T) {
	c, log := otlptest.New(t), new(bytes.Buffer)
	c.Answers(http.StatusBadRequest)
	e, tracer := open(t, log, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.HTTP, "OTEL_BSP_MAX_QUEUE_SIZE": "2", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1"})
	for range 100 { // more than the queue takes
		tracer.Begin(t.Context(), trace.Origin{Run: "r"}).End("done")
	}
	if err := e.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Answers(0)
	tracer.Begin(t.Context(), trace.Origin{Run: "r"}).End("done")
	e.Close()
	if n := strings.Count(log.String(), "traces cannot be exported"); n != 1 || !strings.Contains(log.String(), "traces are exported again") {
		t.Errorf("%d warnings: %s", n, log)
	}
	if len(c.Spans(t, 1)) != 1 {
		t.Error("spans that were refused came again")
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	e, tracer, err := Open(t.Context(), Options{Getenv: func(string) string { return "" }})
	if e.Close(); e != nil || tracer != nil || err != nil {
		t.Errorf("without variables there are %v, %v, %v", e, tracer, err)
	}
}

// Servers that are labelled untrusted learn no traces, unless they are named.
func TestPassing(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Servers: map[string]*config.Server{
		"plain":    {Type: config.KindStdio},
		"labelled": {Type: config.KindStdio, Labels: []string{"private", "untrusted"}},
		"allowed":  {Type: config.KindStdio, Labels: []string{"untrusted"}, Trace: new(true)},
		"refused":  {Type: config.KindStdio, Trace: new(false)},
		"in part":  {Type: config.KindStdio, Tools: config.Tools{Labels: map[string][]string{"send_*": {"external"}, "read_*": {"untrusted"}}}},
		"builtin":  {Type: config.KindBuiltin, Builtin: "time"},
	}}
	p := &Passing{Config: func() *config.Config { return cfg }}
	for name, want := range map[string]bool{"plain": true, "labelled": false, "allowed": true, "refused": false, "in part": false, "builtin": true, "unknown": false, "": false} {
		if got := p.To(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
	cfg = &config.Config{Servers: map[string]*config.Server{"plain": {Type: config.KindStdio, Trace: new(false)}}}
	if p.To("plain") {
		t.Error("a changed configuration is not looked at")
	}
}

// BenchmarkRun is what tracing adds to a run with one call: four spans, which a collector
// that takes everything gets in the background.
func BenchmarkRun(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	for name, env := range map[string]map[string]string{"off": {}, "on": {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}} {
		b.Run(name, func(b *testing.B) {
			e, tracer, err := Open(b.Context(), Options{Getenv: func(name string) string { return env[name] }, Logger: slog.New(slog.DiscardHandler), Passes: func(string) bool { return true }})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			b.ReportAllocs()
			for b.Loop() {
				r := tracer.Begin(b.Context(), trace.Origin{Run: "r1", Session: "s1", Profile: "work"})
				r.Starts()
				r.Previewed()
				if step := r.Step(); step != nil {
					_, decided := step(b.Context(), trace.Decide, "notes", "read", 1)
					decided("allow")
					_, called := step(b.Context(), trace.Call, "notes", "read", 1)
					called("done")
				}
				r.End("done")
			}
		})
	}
}
