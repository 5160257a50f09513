package bridge

import (
	"context"
	"encoding/json"
	"slices"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/surface"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// retool makes the tools that clients see those of the gate's present view. What has
// not changed is left alone, since clients are told of every change.
func (s *Server) retool() {
	s.rebuild.Lock()
	defer s.rebuild.Unlock()
	s.menus.made.Clear() // before clients are told
	var nobody *access.Rules
	want := s.wanted(s.o.Gate.View(), nobody.For("", nil), s.o.Full || s.o.Access().Full()).tools
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
			s.mcp.AddTool(t.tool, s.menus.admitted())
			s.tools[name] = string(text)
		}
	}
}

type offered struct {
	tool    *mcp.Tool
	handler mcp.ToolHandler
}

// wanted are the tools that clients of the same rights may call under a view.
func (s *Server) wanted(view *gate.View, g access.Rights, full bool) *menu {
	m := &menu{tools: make(map[string]offered)}
	shown := surface.Tools(surface.Options{
		Evals: g.Evals(policyOf(view)), Full: full, Pauses: len(view.Profiles.Names()) > 0, ReadOnly: view.ReadOnly,
		Sees: func(profile string) *catalog.View { return view.Within(profile, scope(view, profile, g)) },
	})
	for _, t := range shown {
		var handler mcp.ToolHandler
		switch t.Kind {
		case surface.KindEval:
			handler = func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.eval(ctx, req, t.Profile)
			}
		case surface.KindDiscovery:
			handler = s.discover
		case surface.KindResume:
			handler = s.evalResume
		case surface.KindStatus:
			handler = s.status
		}
		m.tools[t.Tool.Name] = offered{t.Tool, handler}
		if t.Unlisted {
			m.unlisted = append(m.unlisted, t.Tool.Name)
		}
	}
	return m
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
func (s *Server) status(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	out, g := s.Status(ctx), s.o.rightsOf(ctx, req.Extra)
	out.Servers = slices.DeleteFunc(out.Servers, func(one surface.ServerStatus) bool { return !g.Server(one.Name) })
	out.Profiles = slices.DeleteFunc(slices.Clone(out.Profiles), func(name string) bool { return !g.Profile(name) })
	if !g.Everything() { // they may name what this client does not reach
		out.Problem, out.Held = "", ""
	}
	if sess, err := s.session(req); err == nil {
		open, err := s.o.Gate.Broker().Requests(ctx, approval.Filter{Open: s.o.Now()})
		if err != nil {
			return failure("reading the requests: " + err.Error()), nil
		}
		for _, e := range open {
			if e.Items[0].Key.Session == sess.id {
				out.Requests = append(out.Requests, e.ID)
			}
		}
	}
	text, err := canon.JSON(out)
	if err != nil {
		return failure("writing the status: " + err.Error()), nil
	}
	return &mcp.CallToolResult{StructuredContent: text, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}
