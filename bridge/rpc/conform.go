package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Versions of the protocol.
const (
	StatelessProtocol     = "2026-07-28" // the first without sessions
	NewestSessionProtocol = "2025-11-25"
)

// Conform does what the protocol demands of a server and the SDK leaves out.
func Conform(next mcp.MethodHandler) mcp.MethodHandler { return strict(clampInitialize(next)) }

// resourceNotFound is the code up to 2025-11-25; since 2026-07-28 it is that of
// invalid params.
const resourceNotFound = -32002

// strict refuses lists that the bridge does not declare, which the SDK would answer
// as empty. The error for a missing resource gets the code of the client's era, and
// that for a second initialize gets one at all.
func strict(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req.GetParams().(type) {
		case *mcp.ListResourcesParams, *mcp.ListResourceTemplatesParams, *mcp.ListPromptsParams:
			return nil, methodNotFound(method)
		}
		res, err := next(ctx, method, req)
		var failed *jsonrpc.Error
		if method == "initialize" && err != nil && !errors.As(err, &failed) { // a second one, which the SDK answers with the code 0
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + err.Error()}
		}
		if read, ok := req.(*mcp.ReadResourceRequest); ok && read.ProtocolVersion() < StatelessProtocol && errors.As(err, &failed) && failed.Code == jsonrpc.CodeInvalidParams {
			return nil, &jsonrpc.Error{Code: resourceNotFound, Message: failed.Message, Data: failed.Data}
		}
		return res, err
	}
}

func methodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
}

// clampInitialize answers an initialize that asks for the stateless protocol
// with the newest one that has an initialize: the two do not go together, and
// the SDK would take the answer for a stateless session.
func clampInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p != nil && p.ProtocolVersion >= StatelessProtocol {
			p.ProtocolVersion = NewestSessionProtocol
		}
		return next(ctx, method, req)
	}
}
