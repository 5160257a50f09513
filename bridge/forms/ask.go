package forms

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A heard is what a client answered to a form, also where the SDK finds that it
// does not fit the form.
type heard struct{ res *mcp.ElicitResult }

type heardKey struct{}

// Overhear is the middleware of a server that keeps what clients answer to forms
// for Ask.
func Overhear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if h, ok := ctx.Value(heardKey{}).(*heard); ok && err == nil {
			h.res, _ = res.(*mcp.ElicitResult)
		}
		return res, err
	}
}

// Ask puts a form to the client of a session and returns its answer, whatever that
// holds. The session's server has Overhear among its sending middleware.
func Ask(ctx context.Context, at *mcp.ServerSession, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var h heard
	res, err := at.Elicit(context.WithValue(ctx, heardKey{}, &h), form)
	if err != nil && h.res != nil {
		return h.res, nil
	}
	return res, err
}
