package surface

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// WriteAnswer writes an answer for whoever fetches it later, from any bridge.
func WriteAnswer(res *mcp.CallToolResult) ([]byte, error) {
	text, err := json.Marshal(res)
	if err != nil {
		return nil, fmt.Errorf("writing an answer that is kept: %w", err)
	}
	return text, nil
}

// ReadAnswer is its inverse: the structured content is, byte for byte, what it was.
func ReadAnswer(text []byte) (*mcp.CallToolResult, error) {
	res := new(mcp.CallToolResult)
	var raw struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	err := json.Unmarshal(text, res)
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading an answer that was kept: %w", err)
	}
	if res.StructuredContent = nil; raw.Structured != nil {
		res.StructuredContent = raw.Structured
	}
	return res, nil
}
