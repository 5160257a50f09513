package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// spans are all that were made.
type spans struct {
	mu    sync.Mutex
	all   []*oneSpan
	ended []string // name, and what the last attribute says
}

type oneSpan struct {
	in *spans
	trace.Start
	context trace.Context
}

func (s *spans) Start(start trace.Start) trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("%032x", len(s.all)+1)
	if start.Parent != (trace.Context{}) {
		id = start.Parent.TraceID()
	}
	made := &oneSpan{s, start, trace.Parse(fmt.Sprintf("00-%s-%016x-01", id, len(s.all)+1), start.Parent.State)}
	s.all = append(s.all, made)
	return made
}

func (s *oneSpan) Context() trace.Context { return s.context }

func (s *oneSpan) End(_ string, more ...trace.Attribute) {
	text := s.Name
	for _, a := range more {
		text += " " + a.Text
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.in.ended = append(s.in.ended, text)
}

func (s *spans) tracer() func(*Options) {
	return func(o *Options) {
		o.Tracer = trace.New(trace.Options{Exporter: s, Passes: func(server string) bool { return server == "b" }})
	}
}

// take returns the names of the spans that ended since, sorted: calls go side by side.
func (s *spans) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.ended
	s.ended = nil
	slices.Sort(ended)
	return ended
}

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientParent = "00-" + clientTrace + "-00f067aa0ba902b7-01"
)

// A run that goes on elsewhere has a new span, linked to its first; each part's records
// have its trace, and servers learn of it where they may.
func TestSpansOfARunThatGoesOnElsewhere(t *testing.T) {
	f, first, second := newFleet(), new(spans), new(spans)
	told := map[string]string{}
	var mu sync.Mutex
	listens := func(b *bench) {
		for name := range b.up.tools {
			b.up.tools[name] = func(ctx context.Context, args json.RawMessage) (string, error) {
				meta := map[string]any{}
				trace.Add(ctx, &meta)
				mu.Lock()
				defer mu.Unlock()
				told[name], _ = meta["traceparent"].(string)
				return text(string(args)), nil
			}
		}
	}
	one := f.bridge(t, "one", queued(), first.tracer())
	listens(one)
	id, err := one.Start(trace.From(t.Context(), map[string]any{"traceparent": clientParent, "tracestate": "v=1"}, nil), "", `await codemode.b__echo({n: 1}); return await codemode.a__echo({n: 2})`, nil, "ci")
	if err != nil {
		t.Fatal(err)
	}
	f.open(t, 1)
	waitUntil(t, func() bool { r, ok := one.roster.lookup(id); return ok && r.quiet() })
	one.Close(0)
	if got, want := first.take(), []string{"decide allow", "decide ask", "preview", "tools/call echo done", "tools/call eval paused", "wait for a person suspended"}; !slices.Equal(got, want) {
		t.Errorf("the first part has the spans %q, want %q", got, want)
	}
	if got := told["b__echo"]; !strings.Contains(got, clientTrace) || got == clientParent {
		t.Errorf("server b is told %q, not a span of the client's trace", got)
	}
	f.answer(t, f.open(t, 1)[0], yes)
	two := f.bridge(t, "two", queued(), second.tracer())
	listens(two)
	if _, err := two.Resume(t.Context(), id, "the test", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := second.take(), []string{"decide ask", "preview", "tools/call echo done", "tools/call eval done"}; !slices.Equal(got, want) {
		t.Errorf("the second part has the spans %q, want %q", got, want)
	}
	if told, ok := told["a__echo"]; !ok || told != "" {
		t.Errorf("server a, which may not learn of traces, is told %q", told)
	}
	began, goesOn := first.all[0], second.all[0]
	if began.Parent.Parent != clientParent || goesOn.Parent != (trace.Context{}) || goesOn.Link != began.context {
		t.Errorf("the parts begin with %+v and %+v", began.Start, goesOn.Start)
	}
	now := map[string]int{}
	for row, err := range f.records.Rows(t.Context(), ledger.Query{Runs: []string{id}}) {
		if err != nil {
			t.Fatal(err)
		}
		want := began
		if now["run_resumed"] > 0 || row.Record.Event == ledger.RunResumed {
			want = goesOn
		}
		if now[string(row.Record.Event)]++; row.Record.TraceID != want.context.TraceID() {
			t.Errorf("a record of %s has the trace %q, want that of %s", row.Record.Event, row.Record.TraceID, want.context.Parent)
		}
	}
	if now["run_resumed"] != 1 || now["outcome"] != 2 {
		t.Errorf("the records are %v", now)
	}
}

// The trace of a request over HTTP may be in its headers; a denial says it, and only there.
func TestDenialsSayTheTrace(t *testing.T) {
	for name, tracing := range map[string]func(*Options){"traced": new(spans).tracer(), "not traced": func(*Options) {}} {
		b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.Denylist = []string{"a__fail"} }), tracing)
		server := serveHTTP(t, b, mcphttp.Options{})
		transport := &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: traced{}}}
		c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := eval(t, c, `try { await codemode.a__fail({}) } catch (e) { return [e.reason, e.traceId, e.message.includes(e.traceId)] }`), `["`+string(approval.Denied)+`","`+clientTrace+`",false]`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		c.Close()
	}
	b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.Denylist = []string{"a__fail"} }))
	if got := eval(t, b.connect(t, nil), `try { await codemode.a__fail({}) } catch (e) { return "traceId" in e }`); got != "false" {
		t.Errorf("without a trace the denial has one: %s", got)
	}
}

// traced sends a trace with each request.
type traced struct{}

func (traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("traceparent", clientParent)
	return http.DefaultTransport.RoundTrip(r)
}

// A run whose script cannot begin has ended its span.
func TestSpansOfARunThatDoesNotBegin(t *testing.T) {
	s := new(spans)
	b := newBench(t, profiles.Spec{}, s.tracer())
	b.Close(0)
	if _, err := b.Start(t.Context(), "", `return 1`, nil, "ci"); err == nil {
		t.Fatal("a bridge that has ended runs a script")
	}
	if got := s.take(); len(got) != len(s.all) {
		t.Errorf("of %d spans these ended: %q", len(s.all), got)
	}
}
