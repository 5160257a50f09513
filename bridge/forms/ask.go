package forms

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A heard is what a client answered to a form, even if the SDK rejects it because
// it does not fit the form.
type heard struct{ res *mcp.ElicitResult }

type heardKey struct{}

// Overhear is sending middleware of a server: it keeps for Ask what clients answer
// to forms.
func Overhear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if h, ok := ctx.Value(heardKey{}).(*heard); ok && err == nil {
			h.res, _ = res.(*mcp.ElicitResult)
		}
		return res, err
	}
}

// Ask puts a form to the client of a session and returns its answer, whether it fits
// the form or not. The session's server must have Overhear as sending middleware.
func Ask(ctx context.Context, at *mcp.ServerSession, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var h heard
	res, err := at.Elicit(context.WithValue(ctx, heardKey{}, &h), form)
	if err != nil && h.res != nil {
		return h.res, nil
	}
	return res, err
}
