package trace_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/trace"
)

const (
	id     = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent = "00-" + id + "-00f067aa0ba902b7-01"
)

// Only what W3C Trace Context calls a traceparent and a tracestate is taken in.
func TestFrom(t *testing.T) {
	t.Parallel()
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	later := "01-" + id + "-00f067aa0ba902b7-01-more"
	other := "00-" + strings.Repeat("a", 32) + "-00f067aa0ba902b7-00"
	for name, row := range map[string]struct {
		meta   map[string]any
		header http.Header
		want   trace.Context
	}{
		"nothing":                          {},
		"of _meta":                         {meta: map[string]any{"traceparent": parent, "tracestate": "a=1", "baggage": "secret=1"}, want: trace.Context{Parent: parent, State: "a=1"}},
		"of headers":                       {header: header("Traceparent", parent, "Tracestate", "a=1", "Tracestate", "b=2", "Baggage", "x=1"), want: trace.Context{Parent: parent, State: "a=1,b=2"}},
		"_meta before headers":             {meta: map[string]any{"traceparent": parent}, header: header("Traceparent", other, "Tracestate", "h=1"), want: trace.Context{Parent: parent}},
		"headers where _meta is malformed": {meta: map[string]any{"traceparent": "no"}, header: header("Traceparent", other), want: trace.Context{Parent: other}},
		"a later version":                  {meta: map[string]any{"traceparent": later}, want: trace.Context{Parent: later}},
		"no text":                          {meta: map[string]any{"traceparent": 7}},
		"two headers":                      {header: header("Traceparent", parent, "Traceparent", other)},
		"a state alone":                    {meta: map[string]any{"tracestate": "a=1"}},
		"too short":                        {meta: map[string]any{"traceparent": parent[:54]}},
		"version 00 with more":             {meta: map[string]any{"traceparent": parent + "-more"}},
		"the version that is forbidden":    {meta: map[string]any{"traceparent": "ff" + parent[2:]}},
		"a trace of zeros":                 {meta: map[string]any{"traceparent": "00-" + strings.Repeat("0", 32) + parent[35:]}},
		"a span of zeros":                  {meta: map[string]any{"traceparent": parent[:36] + strings.Repeat("0", 16) + parent[52:]}},
		"capitals":                         {meta: map[string]any{"traceparent": strings.ToUpper(parent)}},
		"later, without end":               {meta: map[string]any{"traceparent": later + strings.Repeat("x", 600)}},
		"later, with a control character":  {meta: map[string]any{"traceparent": later + "\n"}},
		"a state that is too long":         {meta: map[string]any{"traceparent": parent, "tracestate": strings.Repeat("a", 513)}, want: trace.Context{Parent: parent}},
		"a state of two lines":             {meta: map[string]any{"traceparent": parent, "tracestate": "a=1\nb=2"}, want: trace.Context{Parent: parent}},
	} {
		if got := trace.Of(trace.From(t.Context(), row.meta, row.header)); got != row.want {
			t.Errorf("%s: got %+v, want %+v", name, got, row.want)
		}
	}
	if got := trace.Parse(parent, "").TraceID(); got != id {
		t.Errorf("the id is %q, want %q", got, id)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(parent, "a=1")
	f.Add("01-"+id+"-00f067aa0ba902b7-01-x", "")
	f.Add("", strings.Repeat("é", 99))
	f.Fuzz(func(t *testing.T, p, state string) {
		got := trace.Parse(p, state)
		if got != trace.Parse(got.Parent, got.State) {
			t.Errorf("%+v is read as something else the second time", got)
		}
		if got != (trace.Context{}) && (got.Parent != p || len(got.TraceID()) != 32 || len(got.State) > 512) {
			t.Errorf("%q, %q is read as %+v", p, state, got)
		}
	})
}

// A book notes the spans that end.
type book struct {
	mu    sync.Mutex
	n     int
	ended []string
}

type line struct {
	b  *book
	s  trace.Start
	is trace.Context
}

func (b *book) Start(s trace.Start) trace.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	in := id
	if s.Parent != (trace.Context{}) {
		in = s.Parent.TraceID()
	}
	return &line{b, s, trace.Parse(fmt.Sprintf("00-%s-%016x-01", in, b.n), s.Parent.State)}
}

func (l *line) Context() trace.Context { return l.is }
func (l *line) End(failed string, more ...trace.Attribute) {
	text := fmt.Sprintf("%s kind=%d link=%s failed=%q", l.s.Name, l.s.Kind, l.s.Link.Parent, failed)
	for _, a := range append(slices.Clone(l.s.Attributes), more...) {
		if text += fmt.Sprintf(" %s=%s", a.Key, a.Text); a.Text == "" {
			text += fmt.Sprint(a.Number)
		}
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.ended = append(l.b.ended, text)
}

// What spans say of a run and the steps of its calls, and to whom the trace is passed on.
func TestRun(t *testing.T) {
	t.Parallel()
	b := new(book)
	tracer := trace.New(trace.Options{Exporter: b, Passes: func(server string) bool { return server == "notes" }})
	ctx := trace.From(t.Context(), map[string]any{"traceparent": "00-" + strings.Repeat("b", 32) + "-00f067aa0ba902b7-01", "tracestate": "v=1"}, nil)
	r := tracer.Begin(ctx, trace.Origin{Run: "r1", Session: "s1", Profile: "work"})
	if r.ID() != strings.Repeat("b", 32) {
		t.Errorf("the run is in trace %s, not in its client's", r.ID())
	}
	r.Starts()
	r.Previewed()
	told := map[string]any{}
	for _, s := range []struct{ step, server, tool, how string }{
		{trace.Decide, "notes", "read", "ask"}, {trace.Wait, "notes", "read", "approved"}, {trace.Call, "notes", "read", "done"}, {trace.Call, "web", strings.Repeat("é", 99), "failed"},
		{"resources/read", "notes", "file:///secret", "unknown"}, {"resources/list", "", "", "done"},
	} {
		in, end := r.Step()(t.Context(), s.step, s.server, s.tool, 1)
		var meta map[string]any
		trace.Add(in, &meta)
		if meta != nil {
			told[s.step+" "+s.server] = meta["tracestate"]
		}
		end(s.how)
	}
	r.End("failed")
	if want := map[string]any{"tools/call notes": "v=1", "resources/read notes": "v=1"}; fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told were %v, want %v", told, want)
	}
	again := tracer.Begin(t.Context(), trace.Origin{Run: "r1", Session: "s2", First: r.First()})
	if again.First() != r.First() {
		t.Error("a part of a run links to another than the first")
	}
	again.End(trace.Paused)
	cut := strings.Repeat("é", 64)
	want := []string{
		`preview kind=0 link= failed=""`,
		`decide kind=0 link= failed="" codemode.call=1 codemode.server=notes gen_ai.tool.name=read codemode.disposition=ask`,
		`wait for a person kind=0 link= failed="" codemode.call=1 codemode.server=notes gen_ai.tool.name=read codemode.verdict=approved`,
		`tools/call read kind=2 link= failed="" codemode.call=1 codemode.server=notes mcp.method.name=tools/call gen_ai.tool.name=read gen_ai.operation.name=execute_tool codemode.outcome=done`,
		`tools/call ` + cut + ` kind=2 link= failed="tool_error" codemode.call=1 codemode.server=web mcp.method.name=tools/call gen_ai.tool.name=` + cut + ` gen_ai.operation.name=execute_tool codemode.outcome=failed`,
		`resources/read kind=2 link= failed="unknown_outcome" codemode.call=1 codemode.server=notes mcp.method.name=resources/read codemode.outcome=unknown`,
		`resources/list kind=2 link= failed="" codemode.call=1 mcp.method.name=resources/list codemode.outcome=done`,
		`tools/call eval kind=1 link= failed="tool_error" mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=eval mcp.session.id=s1 codemode.run=r1 codemode.profile=work codemode.outcome=failed`,
		`tools/call eval kind=1 link=` + r.First().Parent + ` failed="" mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=eval mcp.session.id=s2 codemode.run=r1 codemode.outcome=paused`,
	}
	if !slices.Equal(b.ended, want) {
		t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(b.ended, "\n"), strings.Join(want, "\n"))
	}
}

// A run that is not traced allocates nothing for that.
func TestOffCostsNothing(t *testing.T) {
	var off *trace.Tracer
	ctx := context.Background()
	var meta map[string]any
	allocs := testing.AllocsPerRun(1000, func() {
		r := off.Begin(ctx, trace.Origin{Run: "r", Session: "s"})
		r.Starts()
		r.Previewed()
		if r.Step() != nil || r.ID() != "" || r.First() != (trace.Context{}) {
			t.Fatal("a nil tracer traces")
		}
		trace.Add(trace.From(ctx, nil, nil), &meta)
		r.End("done")
	})
	if allocs != 0 || meta != nil {
		t.Errorf("a run that is not traced allocates %v times, and tells %v", allocs, meta)
	}
}
