package trace

import (
	"context"
	"net/http"
	"strings"
)

// The names under which a context travels, in _meta and as headers of HTTP.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"

	parentHeader = "Traceparent" // as http.CanonicalHeaderKey has them
	stateHeader  = "Tracestate"
)

// A Context is what W3C Trace Context says of a span. Its zero value is none.
type Context struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// TraceID returns 32 hexadecimal digits; empty for none.
func (c Context) TraceID() string {
	if c.Parent == "" {
		return ""
	}
	return c.Parent[3:35]
}

// maxState bounds a tracestate, in bytes: what is longer is left out.
const maxState = 512

// Parse returns the context that two texts of somebody else say; zero if the first is not
// well formed. A tracestate that is not is left out.
func Parse(parent, state string) Context {
	if !validParent(parent) {
		return Context{}
	}
	if len(state) > maxState || strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		state = ""
	}
	return Context{Parent: parent, State: state}
}

// validParent reports whether a text is version 00 of a traceparent, or begins as one and
// is a later version's: version, trace, span, flags.
func validParent(text string) bool {
	if len(text) < 55 || len(text) > maxState || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return false
	}
	version, trace, span, flags, rest := text[:2], text[3:35], text[36:52], text[53:55], text[55:]
	switch {
	case !hexadecimal(version), version == "ff", !hexadecimal(trace), !hexadecimal(span), !hexadecimal(flags):
		return false
	case strings.Trim(trace, "0") == "", strings.Trim(span, "0") == "":
		return false
	case version == "00":
		return rest == ""
	default:
		return rest == "" || rest[0] == '-' && !strings.ContainsFunc(rest, func(r rune) bool { return r < '!' || r > '~' })
	}
}

func hexadecimal(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

type incoming struct{}
type outgoing struct{}

// From returns a context with the trace that a request brings: what _meta says or, where it
// says nothing of use, the headers. Either may be nil.
func From(ctx context.Context, meta map[string]any, header http.Header) context.Context {
	parent, _ := meta[traceparent].(string)
	state, _ := meta[tracestate].(string)
	c := Parse(parent, state)
	if all := header[parentHeader]; c == (Context{}) && len(all) == 1 {
		c = Parse(all[0], strings.Join(header[stateHeader], ","))
	}
	if c == (Context{}) {
		return ctx
	}
	return context.WithValue(ctx, incoming{}, c)
}

// Handler has the requests that next serves bring the trace of their headers.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(From(r.Context(), nil, r.Header)))
	})
}

// Of returns what [From] has found; zero if there was nothing.
func Of(ctx context.Context) Context {
	c, _ := ctx.Value(incoming{}).(Context)
	return c
}

// Passed returns a context in which calls pass a trace on.
func Passed(ctx context.Context, c Context) context.Context {
	return context.WithValue(ctx, outgoing{}, c)
}

// Add puts the trace of a call into the _meta of its request, if the server may know it.
func Add(ctx context.Context, meta *map[string]any) {
	c, ok := ctx.Value(outgoing{}).(Context)
	if !ok {
		return
	}
	if *meta == nil {
		*meta = map[string]any{}
	}
	(*meta)[traceparent] = c.Parent
	if c.State != "" {
		(*meta)[tracestate] = c.State
	}
}
