package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/principal"

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

// TraceOf is the client's own trace of a call, as W3C Trace Context writes it; empty if
// it has none.
func TraceOf(req *mcp.CallToolRequest) string {
	parent, _ := req.Params.Meta["traceparent"].(string)
	if parts := traceparent.FindStringSubmatch(parent); parts != nil {
		return parts[1]
	}
	return ""
}

var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

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
