package bridge

import (
	"context"
	"encoding/json"
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/surface"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// retool makes the tools that clients see those of the gate's present view. What has
// not changed is left alone, since clients are told of every change.
func (s *Server) retool() {
	s.rebuild.Lock()
	defer s.rebuild.Unlock()
	want, unlisted := s.wanted(s.o.Gate.View())
	s.unlisted.Store(&unlisted) // before clients are told
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

// list leaves out of a list of tools those that a client need not see: where every tool
// of every server is in the descriptions, there is nothing to search. They answer if they
// are called, since not every client takes notice when a list changes.
func (s *Server) list(result mcp.Result) {
	if all, ok := result.(*mcp.ListToolsResult); ok {
		unlisted := *s.unlisted.Load()
		all.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(t *mcp.Tool) bool { return slices.Contains(unlisted, t.Name) })
	}
}

type offered struct {
	tool    *mcp.Tool
	handler mcp.ToolHandler
}

// wanted are the tools that clients may call under a view, by name, and which of them
// they need not see.
func (s *Server) wanted(view *gate.View) (all map[string]offered, unlisted []string) {
	all = make(map[string]offered)
	offer := func(t *mcp.Tool, h mcp.ToolHandler) { all[t.Name] = offered{t, h} }
	search := s.o.Full // whether anything must be searched for
	eval := func(name, title, profile string) {
		tool, listed := surface.Eval(name, title, view.Sees(profile), view.ReadOnly(profile))
		search = search || !listed
		offer(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.eval(ctx, req, profile)
		})
	}
	eval("eval", "Run a script", "")
	for _, profile := range view.Profiles.Names() {
		if view.Profiles.Alone() {
			break
		}
		eval("codemode_eval_"+profile, "Run a script ("+profile+")", profile)
	}
	sees := view.Sees("").Names()
	for _, t := range surface.Discovery(s.o.Full) {
		if slices.Contains(sees, t.Name) {
			offer(t, s.discover)
			if !search {
				unlisted = append(unlisted, t.Name)
			}
		}
	}
	if len(view.Profiles.Names()) > 0 { // nothing else asks people, so that a run pauses
		offer(surface.Resume(), s.evalResume)
	}
	if s.o.Full {
		offer(surface.Status(), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.status(ctx, req), nil
		})
	}
	return all, unlisted
}

// Status returns how the bridge is.
func (s *Server) Status(ctx context.Context) surface.BridgeStatus {
	view := s.o.Gate.View()
	var out surface.BridgeStatus
	out.Servers = surface.ServersOf(s.o.Upstreams.Status())
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
	out.Runs = s.roster.running()
	out.Paused = len(s.leases.paused(ctx))
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
