package surface

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Found is the answer of a discovery tool: what the function answers, and its note, if it
// has one. Structured content is always an object, since older clients take nothing else: a
// list is {"result": list}. The note is in it, too.
func Found(answer json.RawMessage, note string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}
	var object map[string]any
	if json.Unmarshal(answer, &object) != nil || object == nil {
		object = map[string]any{"result": answer}
		r.StructuredContent = object
	}
	if note != "" {
		object["note"] = note
		r.StructuredContent = object
		r.Content = append(r.Content, &mcp.TextContent{Text: note})
	}
	return r
}
