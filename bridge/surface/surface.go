// Package surface has what a client's model reads of the bridge before it calls
// anything: the names, descriptions and schemas of its tools, and the instructions of
// the server. Whoever serves them adds the handlers, which read what they are sent
// with [ReadArguments].
//
//	eval, codemode_eval_PROFILE       run a script
//	search_tools, get_tools           find tools without one
//	eval_resume                       goes on with a paused run
//	get_tool_schema, codemode_status  with the full surface only
//
// All of it is in the model's context whether it is used or not, so it is short: a
// description is at most maxDescription bytes, and the same bytes for the same tools.
// What a model has to know only in some situation is said in the answer that brings it
// there. Where the eval tools list every tool, search_tools and get_tools need not be shown.
package surface

import (
	"encoding/json"

	"codemode-bridge/bridge/catalog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Instructions are the server's own, for clients that show them to the model.
const Instructions = "eval runs one script for many tool calls."

// Eval is a tool that runs scripts, which call what sees shows. It reports whether its
// description lists all of that, so that nobody need search.
func Eval(name, title string, sees *catalog.View, readOnly bool) (tool *mcp.Tool, listed bool) {
	text, listed := describe(sees)
	return &mcp.Tool{
		Name: name, Title: title,
		Description: text,
		InputSchema: json.RawMessage(evalSchema), OutputSchema: json.RawMessage(AnswerSchema),
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, DestructiveHint: new(!readOnly), OpenWorldHint: new(true)},
	}, listed
}

// Discovery are the discovery functions as tools. Scripts have the same functions
// under the same names.
func Discovery(full bool) (all []*mcp.Tool) {
	for _, t := range discoveryTools {
		if full || !t.full {
			all = append(all, &mcp.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema), Annotations: looking()})
		}
	}
	return all
}

// Resume is the tool that goes on with a paused run.
func Resume() *mcp.Tool {
	return &mcp.Tool{Name: "eval_resume", Title: "Go on with a paused run",
		Description:  "Goes on with a paused run, as its answer says. Approves nothing.",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"run":{"type":"string"},"resume":{"type":"string"}},"required":["run"]}`),
		OutputSchema: json.RawMessage(AnswerSchema),
		Annotations:  &mcp.ToolAnnotations{Title: "Go on with a paused run", OpenWorldHint: new(true)}}
}

// Status is the tool that says how the bridge is.
func Status() *mcp.Tool {
	return &mcp.Tool{Name: "codemode_status", Title: "Status of the bridge",
		Description: "Which servers are connected, which are not and why, their tool counts, the sandbox, the profiles, and this session's own requests that wait for a person.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), Annotations: looking()}
}

// looking annotates a tool that changes nothing and reaches no server.
func looking() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)}
}

const evalSchema = `{"type":"object","properties":{` +
	`"code":{"type":"string","description":"top-level await and return work"},` +
	`"input":{"description":"JSON; global variable input"}},"required":["code"]}`

// AnswerSchema is what the eval tools answer, however a script ends: a success, a
// failed and a paused answer all meet it. Clients refuse an answer without
// structured content, or with one that the schema does not allow, and every
// client has the schema in its model's context: it is short and forbids nothing
// that may be added.
const AnswerSchema = `{"type":"object","properties":{` +
	`"result":{"description":"what the script returned"},` +
	`"error":{"type":"object","properties":{"name":{"type":"string"},"message":{"type":"string"}},"required":["name","message"]},` +
	`"effects":{"type":"array","items":{"type":"object"},"description":"calls that a failed script made"},` +
	`"logs":{"type":"array","items":{"type":"string"}},` +
	`"status":{"const":"paused"},"run":{"type":"string"},"resume":{"type":"string"}}}`

var discoveryTools = []struct {
	name, title, description, schema string
	full                             bool // only with surface "full"
}{
	{name: "search_tools", title: "Search tools",
		description: "Finds tools by keywords, best first, with TypeScript declarations for eval.",
		schema:      `{"type":"object","properties":{"query":{"type":"string"},"server":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`},
	{name: "get_tools", title: "List tools",
		description: "Lists the servers, or the tools of one; cursor is next of the page before.",
		schema:      `{"type":"object","properties":{"server":{"type":"string"},"cursor":{"type":"string"},"limit":{"type":"integer"}}}`},
	{name: "get_tool_schema", title: "Declaration of a tool", full: true,
		description: "Returns the TypeScript declaration of one tool, with comments.",
		schema:      `{"type":"object","properties":{"name":{"type":"string","description":"as search_tools names it"}},"required":["name"],"additionalProperties":false}`},
}
