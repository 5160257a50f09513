package surface

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Success is what an eval tool answers when the script returned.
type Success struct {
	Result json.RawMessage `json:"result,omitempty"` // absent when the script returned undefined
	Logs   []string        `json:"logs,omitempty"`
	Notes  []string        `json:"notes,omitempty"`
	Run    string          `json:"run"`
}

// A Failed is what it answers when the script did not.
type Failed struct {
	Error   ScriptError `json:"error"`
	Effects any         `json:"effects"`        // of its calls, a list
	Did     string      `json:"-"`              // the same in a sentence or two
	Next    string      `json:"next,omitempty"` // what the effects mean for another script
	Logs    []string    `json:"logs,omitempty"`
	Notes   []string    `json:"notes,omitempty"`
	Run     string      `json:"run"`
}

// A ScriptError is what went wrong.
type ScriptError struct {
	Name    string          `json:"name"`
	Message string          `json:"message"`
	Line    int             `json:"line,omitempty"`
	Column  int             `json:"column,omitempty"`
	Frame   string          `json:"frame,omitempty"`
	Hint    string          `json:"hint,omitempty"`
	Stack   []string        `json:"stack,omitempty"`
	Fields  json.RawMessage `json:"fields,omitempty"`
}

// Text is the failure as a model reads it: line, cause, fix, effects.
func (f Failed) Text() string {
	var b strings.Builder
	// What the script wrote must not look like what follows.
	fmt.Fprintf(&b, "%s: %s", f.Error.Name, strings.ReplaceAll(f.Error.Message, "\n", "\n    "))
	if f.Error.Line > 0 && !strings.Contains(f.Error.Message, fmt.Sprintf("(line %d", f.Error.Line)) {
		fmt.Fprintf(&b, " (line %d, column %d)", f.Error.Line, f.Error.Column)
	}
	if f.Error.Frame != "" {
		b.WriteString("\n" + strings.TrimRight(f.Error.Frame, "\n"))
	}
	if f.Error.Hint != "" {
		b.WriteString("\nHint: " + f.Error.Hint)
	}
	for _, note := range f.Notes {
		b.WriteString("\nNote: " + note)
	}
	if len(f.Logs) > 0 {
		b.WriteString("\nLogs:\n  " + strings.ReplaceAll(strings.Join(f.Logs, "\n"), "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\nEffects: %s Run %s.", f.Did, f.Run)
	return b.String()
}

// Failure is an answer that says what went wrong where there is no run to
// speak of.
func Failure(text string) *mcp.CallToolResult {
	body := map[string]any{"error": ScriptError{Name: "RequestError", Message: text}}
	return &mcp.CallToolResult{IsError: true, StructuredContent: body, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// Listed joins names, the first twenty of them.
func Listed(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// CodeEnding is the code of the JSON-RPC error with which a bridge that is about to end
// refuses what it has not begun. It is one of those that are a server's own.
const CodeEnding = -32000

// Refused says why a run was not begun, or does not go on. If that is because the bridge
// ends, it is an error of the protocol, so that clients do not take it for the script's: the
// same request may be sent again, and meets another bridge, or this one once it is back.
func Refused(ends bool, text string) (*mcp.CallToolResult, error) {
	if ends {
		return nil, &jsonrpc.Error{Code: CodeEnding, Message: text + ": nothing has begun; try again"}
	}
	return Failure(text), nil
}
