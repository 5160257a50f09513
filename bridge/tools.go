package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxDescription bounds an eval tool's description, in bytes: some clients
// cut what is longer.
const maxDescription = 2048

// instructions are the server's own, for clients that show them to the model.
const instructions = "Write one script for many tool calls: search_tools finds tools, eval runs JavaScript or TypeScript that calls them as codemode.server__tool(args). Return only what is needed."

// retool makes the tools that clients see those of the gate's present view.
// What has not changed is left alone, so that nobody is told of nothing.
func (s *Server) retool() {
	s.rebuild.Lock()
	defer s.rebuild.Unlock()
	want := s.wanted(s.o.Gate.View())
	for name := range s.tools {
		if _, ok := want[name]; !ok {
			s.mcp.RemoveTools(name)
			delete(s.tools, name)
		}
	}
	for name, t := range want {
		text, err := json.Marshal(t.tool)
		if err != nil {
			s.o.Logger.Error("writing a tool's definition", "tool", name, "err", err)
			continue
		}
		if s.tools[name] != string(text) {
			s.mcp.AddTool(t.tool, t.handler)
			s.tools[name] = string(text)
		}
	}
}

// canPause reports whether a run can come to wait for a person: only where
// there are profiles, since nothing else asks.
func canPause(set *profiles.Set) bool { return len(set.Names()) > 0 }

type offered struct {
	tool    *mcp.Tool
	handler mcp.ToolHandler
}

// wanted are the tools that clients see under a view, by name.
func (s *Server) wanted(view *gate.View) map[string]offered {
	all := make(map[string]offered)
	offer := func(t *mcp.Tool, h mcp.ToolHandler) { all[t.Name] = offered{t, h} }
	eval := func(name, title, profile string) {
		readOnly := view.ReadOnly(profile)
		offer(&mcp.Tool{
			Name: name, Title: title,
			Description: describe(view.Sees(profile)),
			InputSchema: json.RawMessage(evalSchema), OutputSchema: json.RawMessage(answerSchema),
			Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, DestructiveHint: ptr(!readOnly), OpenWorldHint: ptr(true)},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.eval(ctx, req, profile)
		})
	}
	eval("eval", "Run a script", "")
	for _, profile := range view.Profiles.Names() {
		eval("codemode_eval_"+profile, "Run a script ("+profile+")", profile)
	}
	discovery := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: ptr(false), OpenWorldHint: ptr(false)}
	sees := view.Sees("")
	for _, t := range discoveryTools {
		if t.full && !s.o.Full || !slices.Contains(sees.Names(), t.name) {
			continue
		}
		offer(&mcp.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema), Annotations: discovery},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.discover(ctx, req)
			})
	}
	if canPause(view.Profiles) {
		offer(&mcp.Tool{Name: "eval_resume", Title: "Go on with a paused run",
			Description:  "Goes on with a run that was paused to wait for a person, by the run and resume that the paused answer gave. It approves nothing.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"run":{"type":"string"},"resume":{"type":"string","description":"from the same paused answer, if it has one"}},"required":["run"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(answerSchema),
			Annotations:  &mcp.ToolAnnotations{Title: "Go on with a paused run", OpenWorldHint: ptr(true)}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.evalResume(ctx, req)
			})
	}
	if s.o.Full {
		offer(&mcp.Tool{Name: "codemode_status", Title: "Status of the bridge",
			Description: "Which servers are connected, which are not and why, their tool counts, the sandbox, the profiles, and this session's own requests that wait for a person.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), Annotations: discovery},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.status(ctx, req), nil
			})
	}
	return all
}

const evalSchema = `{"type":"object","properties":{` +
	`"code":{"type":"string","description":"JavaScript or TypeScript; top-level await and return work"},` +
	`"input":{"description":"any JSON value; the script's global variable input"}},` +
	`"required":["code"],"additionalProperties":false}`

// answerSchema is what the eval tools answer, however a script ends: a success, a
// failed and a paused answer all meet it. Clients refuse an answer without
// structured content, or with one that the schema does not allow, and every
// client has the schema in its model's context: it is short and forbids nothing
// that may be added.
const answerSchema = `{"type":"object","properties":{` +
	`"result":{"description":"what the script returned"},` +
	`"error":{"type":"object","properties":{"name":{"type":"string"},"message":{"type":"string"}},"required":["name","message"]},` +
	`"effects":{"type":"array","items":{"type":"object"},"description":"calls that a failed script made"},` +
	`"logs":{"type":"array","items":{"type":"string"}},` +
	`"status":{"const":"paused"},"run":{"type":"string"},"resume":{"type":"string"}}}`

// discoveryTools are the discovery functions as MCP tools. Scripts have the
// same functions under the same names.
var discoveryTools = []struct {
	name, title, description, schema string
	full                             bool // only with surface "full"
}{
	{name: "search_tools", title: "Search tools",
		description: "Finds tools of the connected servers by keywords and returns their names, summaries and, when few fit, TypeScript declarations, best first. Returns none when nothing fits. Use what it finds in eval.",
		schema: `{"type":"object","properties":{"query":{"type":"string","description":"keywords, such as \"create issue\""},` +
			`"server":{"type":"string","description":"only tools of this server"},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["query"],"additionalProperties":false}`},
	{name: "get_tools", title: "List tools",
		description: "Lists the connected servers with their tool counts, or the tools of one server, a page at a time.",
		schema: `{"type":"object","properties":{"server":{"type":"string","description":"list the tools of this server"},` +
			`"cursor":{"type":"string","description":"next of the page before"},"limit":{"type":"integer","minimum":1,"maximum":200}},"additionalProperties":false}`},
	{name: "get_tool_schema", title: "Declaration of a tool", full: true,
		description: "Returns the TypeScript declaration of one tool, with comments.",
		schema:      `{"type":"object","properties":{"name":{"type":"string","description":"as search_tools names it"}},"required":["name"],"additionalProperties":false}`},
}

const (
	describeHead = "Run JavaScript/TypeScript that calls the tools of connected MCP servers. One script may make many calls (chain, loop, filter, Promise.all). Only what you return enters the conversation: return just what is needed.\n"
	describeFind = "FIND: await codemode.search_tools({query:\"create issue\", server:\"github\"}) -> [{name, summary, declaration}], best first, [] if nothing fits. Never guess names or arguments. If unsure, return the declarations and call in your next script.\n"
	describeCall = `CALL: await codemode.server__tool({arg: 1}). Most tools return TEXT; json(x) turns JSON text into a value and leaves objects alone.
EXAMPLE
const [open, mine] = (await Promise.all([
  codemode.github__list_issues({owner:"a", repo:"b", state:"open"}), codemode.linear__list_issues({assignee:"me"})])).map(json);
return open.filter(i => !mine.some(m => m.title === i.title)).map(i => ({n: i.number, t: i.title}));
RULES
- Tool failures throw ToolError: catch it to go on with the rest.
- Some calls wait for a person. ToolCallDeniedError is final unless .retryable; take no other route; tell the user its reason.
- {status:"paused", run} is not an error: tell the user and stop. Call eval_resume only after they say they are ready.
- A failed script lists "effects": the calls already made, and which not to make again.
- Large results come back as {shape, sample, handle}; next script: codemode.read(handle, "items[0:50]").
- Media arrive as handles; emit(handle) shows one to the user.
- Resources, prompts: codemode.resources.list(server?), .read(server, uri); codemode.prompts.list(server?), .get(server, name, args).
- No fetch, import, process or files here: use a server's tool. Nothing is kept between scripts; pass data in ` + "`input`. Build long text with array.join."
)

// describe writes an eval tool's description: the same bytes for the same
// tools. Where every declaration fits, they stand in place of the way to find
// them.
func describe(view *catalog.View) string {
	room := maxDescription - len(describeHead) - len(describeCall)
	if all, ok := view.Declarations(room - len("TOOLS\n\n")); ok && all != "" {
		return describeHead + "TOOLS\n" + strings.TrimRight(all, "\n") + "\n" + describeCall
	}
	servers := view.Describe(room - len(describeFind) - 1)
	return describeHead + strings.TrimRight(servers, "\n") + "\n" + describeFind + describeCall
}

// A Status is how the bridge is, at one moment.
type Status struct {
	Servers  []ServerStatus  `json:"servers"`
	Sandbox  any             `json:"sandbox"`
	Profiles []string        `json:"profiles"`
	Policy   string          `json:"policy_revision"`
	Catalog  string          `json:"catalog_revision"`
	Runs     int             `json:"runs"`
	Asking   approval.Counts `json:"asking"` // of all sessions
	// Requests are the asking session's own that wait for a person. Their
	// arguments are for the person alone.
	Paused   int      `json:"paused"` // runs that wait without a bridge
	Requests []string `json:"requests,omitempty"`
	Problem  string   `json:"config_problem,omitempty"`
	Held     string   `json:"config_held,omitempty"`
	Audit    string   `json:"audit_problem,omitempty"`
}

// A ServerStatus is one upstream server in a Status.
type ServerStatus struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Why   string    `json:"why,omitempty"`
	Tools int       `json:"tools"`
	Since time.Time `json:"since"`          // of the state
	Until time.Time `json:"until,omitzero"` // when a server that fails is tried again
	// Failures is how many attempts to connect or, while it is connected, how
	// many calls failed in a row.
	Failures int       `json:"failures,omitempty"`
	Answered time.Time `json:"answered,omitzero"` // when it last answered a call or a listing
}

// Status returns how the bridge is.
func (s *Server) Status(ctx context.Context) Status {
	view := s.o.Gate.View()
	var out Status
	for _, st := range s.o.Upstreams.Status() {
		out.Servers = append(out.Servers, ServerStatus{
			Name: st.Name, State: string(st.State), Why: st.Err, Tools: st.Tools,
			Since: st.Since, Until: st.Until, Failures: st.Failures, Answered: st.Answered,
		})
	}
	out.Sandbox, out.Profiles = s.o.Pool.Status(), view.Profiles.Names()
	out.Policy, out.Catalog = view.Profiles.Revision(), view.Catalog.Revision()
	out.Asking = s.o.Gate.Broker().Counts("")
	if s.o.Problem != nil {
		out.Problem = s.o.Problem()
	}
	if s.o.Held != nil {
		out.Held = s.o.Held()
	}
	if s.o.Unrecorded != nil {
		out.Audit = s.o.Unrecorded()
	}
	s.mu.Lock()
	out.Runs = len(s.live)
	s.mu.Unlock()
	out.Paused = len(s.paused(ctx))
	return out
}

// status answers codemode_status.
func (s *Server) status(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	out := s.Status(ctx)
	if sess, err := s.session(req); err == nil {
		open, err := s.o.Gate.Broker().Requests(ctx, approval.Filter{Open: s.o.Now()})
		if err != nil {
			return failure("reading the requests: " + err.Error())
		}
		for _, e := range open {
			if e.Items[0].Key.Session == sess.id {
				out.Requests = append(out.Requests, e.ID)
			}
		}
	}
	text, err := canon.JSON(out)
	if err != nil {
		return failure("writing the status: " + err.Error())
	}
	return &mcp.CallToolResult{StructuredContent: text, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

func ptr[T any](v T) *T { return &v }
