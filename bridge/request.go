package bridge

import (
	"encoding/json"

	"codemode-bridge/bridge/gate"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a client's request says of itself: its arguments, who it comes from, and
// how its client can be asked.

// evalArgs are the arguments of an eval tool. There are no others: nothing
// that a model says can choose a profile.
type evalArgs struct {
	Code  string          `json:"code"`
	Input json.RawMessage `json:"input"`
}

// reach says how the client of a request can reach a person. Only what the
// client declared counts; a declaration of URLs alone is no form.
func reach(req *mcp.CallToolRequest) gate.Reach {
	caps := req.ClientCapabilities()
	switch {
	case caps == nil || caps.Elicitation == nil:
		return gate.NoElicitation
	case caps.Elicitation.Form == nil && caps.Elicitation.URL != nil:
		return gate.ByAddress // it has a person, and we have no form for them
	default:
		return gate.ByElicitation
	}
}

// principal is the name of who a request comes from: the bearer of a token, or nobody in
// particular.
func principal(req *mcp.CallToolRequest) string {
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		return req.Extra.TokenInfo.UserID
	}
	return ""
}
