// Package principal says who a request comes from, once that is authenticated.
package principal

import "context"

// A Principal is an authenticated caller. The zero value is nobody in particular: the
// local client of standard input and output, or a bridge that asks for no token.
type Principal struct {
	// Name is unique and stable; empty: not authenticated.
	Name   string
	Groups []string
}

type key struct{}

// With returns a context in which p is the caller.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns the caller of a context; the zero value if none was set.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}
