// Package trace says what the spans of a run are, and which trace they belong to.
//
//	eval ─┬─ preview            from the start of the script to its calls having been read
//	      ├─ decide             policy, of one call
//	      ├─ wait for a person  of one call, for as long as the question is open
//	      └─ call               one request to a server and its answer
//
// A client's own trace comes in as the members traceparent and tracestate of a request's
// _meta, or as its HTTP headers of these names (W3C Trace Context). Nothing else is taken
// in, and what is not well formed counts as not sent. The same two go on to the servers
// that [Options.Passes] names.
//
// A run that is suspended ends its spans. Where it goes on, on whichever bridge, it begins a
// new eval span, which is linked to the first: its context is in the run's journal.
//
// No span has an argument, a result, an error's text, or the name of a person or a client.
// What exports spans implements [Exporter]; a nil [Tracer] makes none, and costs nothing.
package trace

import (
	"context"
	"time"
)

// An Exporter makes spans. Its methods may be called concurrently and must not block.
type Exporter interface {
	Start(Start) Span
}

// A Start is how a span begins.
type Start struct {
	Name       string
	Kind       Kind
	At         time.Time // zero: now
	Parent     Context   // zero: it begins a trace
	Remote     bool      // the parent is another process's
	Link       Context   // zero: none
	Attributes []Attribute
}

// A Span is under way until End is called, once.
type Span interface {
	Context() Context
	// End ends it. Failed, unless empty, says of which type its error was.
	End(failed string, more ...Attribute)
}

// A Kind says which side of a request a span is.
type Kind int

const (
	Internal Kind = iota
	Server        // it answers a client
	Client        // it asks a server
)

// An Attribute is one fact about a span: a text or, if that is empty, a number.
type Attribute struct {
	Key    string
	Text   string
	Number int
}

// Options say where spans go.
type Options struct {
	Exporter Exporter
	// Passes reports whether a server is told which trace a call belongs to.
	Passes func(server string) bool
}

// A Tracer makes the spans of runs.
type Tracer struct{ o Options }

// New returns a tracer.
func New(o Options) *Tracer { return &Tracer{o} }

// An Origin says what a run is.
type Origin struct {
	Run, Session, Profile string
	// First is the context that an earlier part of the run began with; zero if there is none.
	First Context
}

// Begin begins the eval span of a run, in the trace that ctx brings. It returns nil for a
// nil tracer.
func (t *Tracer) Begin(ctx context.Context, o Origin) *Run {
	if t == nil {
		return nil
	}
	about := []Attribute{{Key: method, Text: callMethod}, {Key: operation, Text: "execute_tool"}, {Key: toolName, Text: "eval"}, {Key: sessionID, Text: o.Session}, {Key: "codemode.run", Text: o.Run}}
	if o.Profile != "" {
		about = append(about, Attribute{Key: "codemode.profile", Text: o.Profile})
	}
	r := &Run{tracer: t, first: o.First, eval: t.o.Exporter.Start(Start{Name: callMethod + " eval", Kind: Server, Parent: Of(ctx), Remote: true, Link: o.First, Attributes: about})}
	r.scriptAt = time.Now()
	return r
}

// The attributes that have a name by the conventions of OpenTelemetry for MCP.
const (
	method    = "mcp.method.name"
	operation = "gen_ai.operation.name"
	toolName  = "gen_ai.tool.name"
	sessionID = "mcp.session.id"
)

const callMethod = "tools/call"

// A Run makes the spans of one run. All methods may be called on nil, which makes none;
// they may be called concurrently, except for Starts.
type Run struct {
	tracer   *Tracer
	eval     Span
	first    Context
	scriptAt time.Time
}

// ID is that of the trace; empty for nil.
func (r *Run) ID() string {
	if r == nil {
		return ""
	}
	return r.eval.Context().TraceID()
}

// First is the context of the run's first eval span, which later parts of it link to.
func (r *Run) First() Context {
	switch {
	case r == nil:
		return Context{}
	case r.first != Context{}:
		return r.first
	}
	return r.eval.Context()
}

// Starts notes that the script begins: it has waited for a worker.
func (r *Run) Starts() {
	if r != nil {
		r.scriptAt = time.Now()
	}
}

// Previewed notes that the calls of the script have been read.
func (r *Run) Previewed() {
	if r != nil {
		r.tracer.o.Exporter.Start(Start{Name: "preview", At: r.scriptAt, Parent: r.eval.Context()}).End("")
	}
}

// End ends the run, or its part on this bridge, with an outcome as records have it.
func (r *Run) End(outcome string) {
	if r != nil {
		r.eval.End(failures[outcome], Attribute{Key: "codemode.outcome", Text: outcome})
	}
}

// Paused is the outcome of a part of a run that goes on later.
const Paused = "paused"

// failures are the outcomes that are errors, as the attribute error.type has them.
var failures = map[string]string{"failed": "tool_error", "unknown": "unknown_outcome", "stopped": "stopped"}

// The steps of a call that have spans.
const (
	Decide = "decide"
	Wait   = "wait for a person"
	Call   = callMethod
)

// Step returns what begins the span of a step of a call: Decide, Wait, Call or, of reading
// resources and prompts, another method's name. The context it returns is what the step
// runs in; end is told how it ended, in a word of records. It is nil for nil.
func (r *Run) Step() func(ctx context.Context, step, server, tool string, call int) (in context.Context, end func(how string)) {
	if r == nil {
		return nil
	}
	return r.step
}

// longest bounds the name of a tool, which its server has chosen.
const longest = 128

func (r *Run) step(ctx context.Context, step, server, tool string, call int) (context.Context, func(how string)) {
	s := Start{Name: step, Parent: r.eval.Context(), Attributes: []Attribute{{Key: "codemode.call", Number: call}}}
	if server != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: "codemode.server", Text: server})
	}
	key, sent := "codemode.outcome", false
	switch step {
	case Decide:
		key = "codemode.disposition"
	case Wait:
		key = "codemode.verdict"
	default:
		s.Kind, sent = Client, true
		s.Attributes = append(s.Attributes, Attribute{Key: method, Text: step})
	}
	if step != Decide && step != Wait && step != Call {
		tool = "" // an address, not a name
	}
	if tool = clip(tool); tool != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: toolName, Text: tool})
		if sent {
			s.Name += " " + tool
			s.Attributes = append(s.Attributes, Attribute{Key: operation, Text: "execute_tool"})
		}
	}
	span := r.tracer.o.Exporter.Start(s)
	if sent && server != "" && r.tracer.o.Passes(server) {
		ctx = Passed(ctx, span.Context())
	}
	return ctx, func(how string) {
		failed := ""
		if sent {
			failed = failures[how]
		}
		span.End(failed, Attribute{Key: key, Text: how})
	}
}

func clip(name string) string {
	for i := range name {
		if i >= longest {
			return name[:i]
		}
	}
	return name
}
