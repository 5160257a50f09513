package surface

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Found is the answer of a discovery tool: what the function answers, and its note, if it
// has one. As structured content an object stays as it is and a list is {"result": list},
// since older clients take nothing but objects, with the note beside it.
func Found(answer json.RawMessage, note string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}
	if note != "" {
		r.Content = append(r.Content, &mcp.TextContent{Text: note})
	}
	if !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
		object := map[string]any{"result": answer}
		if note != "" {
			object["note"] = note
		}
		r.StructuredContent = object
	}
	return r
}
