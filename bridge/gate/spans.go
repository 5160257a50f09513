package gate

import "context"

// The steps of a call that have spans, besides those that ask a server.
const (
	stepDecide = "decide"
	stepWait   = "wait for a person"
)

// span begins the span of a step of c, if the run is traced and the step has one.
func (c *call) span(ctx context.Context, r *Run, step string) (in context.Context, end func(how string)) {
	if r.Span == nil || step == "" {
		return ctx, func(string) {}
	}
	return r.Span(ctx, step, c.tool.Server, c.tool.Name, c.Number)
}

// method is what MCP calls the request that c is; empty if it asks no server.
func (c *call) method() string {
	switch {
	case c.tool.Method:
		return c.tool.Name
	case c.tool.Server == "":
		return ""
	}
	return "tools/call"
}
