package surface

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A keptAnswer is an answer as it is kept. The structured content is a text in it, since
// JSON within JSON is written anew.
type keptAnswer struct {
	Answer     json.RawMessage `json:"answer"` // without
	Structured string          `json:"structured,omitempty"`
}

// WriteAnswer writes an answer for whoever fetches it later, from any bridge.
func WriteAnswer(res *mcp.CallToolResult) (text []byte, err error) {
	var k keptAnswer
	without := *res
	without.StructuredContent = nil
	switch structured := res.StructuredContent.(type) {
	case nil:
	case json.RawMessage:
		k.Structured = string(structured)
	default:
		text, err = json.Marshal(structured)
		k.Structured = string(text)
	}
	if err == nil {
		k.Answer, err = json.Marshal(&without)
	}
	if err == nil {
		text, err = json.Marshal(k)
	}
	if err != nil {
		return nil, fmt.Errorf("writing an answer that is kept: %w", err)
	}
	return text, nil
}

// ReadAnswer is its inverse: the structured content is, byte for byte, what it was.
func ReadAnswer(text []byte) (*mcp.CallToolResult, error) {
	var k keptAnswer
	res := new(mcp.CallToolResult)
	err := json.Unmarshal(text, &k)
	if err == nil {
		err = json.Unmarshal(k.Answer, res)
	}
	if err != nil {
		return nil, fmt.Errorf("reading an answer that was kept: %w", err)
	}
	if res.StructuredContent = nil; k.Structured != "" {
		res.StructuredContent = json.RawMessage(k.Structured)
	}
	return res, nil
}
