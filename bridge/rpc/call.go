package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/principal"
	"codemode-bridge/bridge/trace"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// CallDigest is over the tool and the arguments of a call: a state that is carried for
// one belongs to no other.
func CallDigest(req *mcp.CallToolRequest) string {
	args, err := canon.Parse(req.Params.Arguments)
	text := args.Bytes()
	if err != nil {
		text = req.Params.Arguments
	}
	sum := sha256.Sum256(append([]byte(req.Params.Name+"\x00"), text...))
	return hex.EncodeToString(sum[:])
}

// Traced returns a context with the trace that a call of a client brings.
func Traced(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	if req.Extra == nil {
		return trace.From(ctx, req.Params.Meta, nil)
	}
	return trace.From(ctx, req.Params.Meta, req.Extra.Header)
}

// Caller is who a request comes from: the bearer of a token, or else whom the context names.
// The groups of a token are its extra "groups", a list of texts.
func Caller(ctx context.Context, extra *mcp.RequestExtra) principal.Principal {
	p := principal.From(ctx)
	if extra == nil || extra.TokenInfo == nil {
		return p
	}
	if groups, ok := extra.TokenInfo.Extra["groups"].([]string); ok || p.Name != extra.TokenInfo.UserID {
		p.Groups = groups
	}
	p.Name = extra.TokenInfo.UserID
	return p
}
