package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Who may see and call what is decided anew for each list of tools, for each call of a tool, and
// at the gate for each call of a script.

// grant is what whoever a request comes from has, at the endpoint or in the window that
// it came through.
func (s *Server) grant(ctx context.Context, extra *mcp.RequestExtra) access.Grant {
	p := rpc.Caller(ctx, extra)
	return s.o.Access().For(p.Name, p.Groups).To(access.Bound(ctx))
}

// policyOf are the profiles of a view.
func policyOf(view *gate.View) access.Policy {
	return access.Policy{Profiles: view.Profiles.Names(), Default: view.Profiles.Default().Name(), Alone: view.Profiles.Alone()}
}

// scope is what a grant reaches under a profile; the empty one is what binds eval.
func scope(view *gate.View, profile string, grants ...access.Grant) gate.Scope {
	if profile == "" {
		profile = view.Profiles.Default().Name()
	}
	return access.Scope{Profile: profile, Grants: grants}
}

// A menu is the tools that clients of one grant may call under a view, by name.
type menu struct {
	tools    map[string]offered
	unlisted []string // those that they need not see
}

func (s *Server) menu(ctx context.Context, extra *mcp.RequestExtra) *menu {
	view, g := s.o.Gate.View(), s.grant(ctx, extra)
	key := [...]any{view, g.Key()}
	if known, ok := s.menus.Load(key); ok {
		return known.(*menu)
	}
	m, _ := s.menus.LoadOrStore(key, s.wanted(view, g, g.Full(s.o.Full)))
	return m.(*menu)
}

// list makes a list of all tools that of one client: those that its principal may call, as they are
// for them, without those that need not be seen. These answer if they are called, since not every
// client takes notice when a list changes.
func (s *Server) list(ctx context.Context, extra *mcp.RequestExtra, result mcp.Result) {
	all, ok := result.(*mcp.ListToolsResult)
	if !ok {
		return
	}
	m, tools := s.menu(ctx, extra), []*mcp.Tool{}
	for _, t := range all.Tools {
		if mine, ok := m.tools[t.Name]; ok && !slices.Contains(m.unlisted, t.Name) {
			tools = append(tools, mine.tool)
		}
	}
	if all.Tools = tools; s.o.Access() != nil {
		all.CacheScope = "private" // no cache in between gives it to somebody else
	}
}

// admitted has a tool answer only those who may call it. To all others it does not exist.
func (s *Server) admitted(t offered) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mine, ok := s.menu(ctx, req.Extra).tools[req.Params.Name]
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", req.Params.Name)}
		}
		return mine.handler(ctx, req)
	}
}

// Regrant tells clients that they may have other tools: who may call what has changed.
func (s *Server) Regrant() {
	s.rebuild.Lock()
	delete(s.tools, "eval") // adding it again tells clients
	s.rebuild.Unlock()
	s.retool()
}

// standard is the profile of eval for somebody, unless they name one.
func (s *Server) standard(g access.Grant, named string) (profile string, err error) {
	if named != "" {
		return named, nil
	}
	for _, e := range g.Evals(policyOf(s.o.Gate.View())) {
		if e.Tool == "eval" {
			return e.Profile, nil
		}
	}
	if why := g.Refuses(s.o.Gate.View().Profiles.Default().Name(), ""); why != "" {
		return "", errors.New(why + ": name a profile, or ask whoever runs the bridge for access")
	}
	return "", nil
}

// access is what the run's principal has now: what they had to have when it began, and what
// the client has that it went on for.
func (r *run) access() []access.Grant {
	rules := r.runner.o.Access()
	all := []access.Grant{rules.For(r.principal, r.groups)}
	if now := r.joined.Load(); now != nil {
		all = append(all, rules.For(r.principal, *now))
	}
	return all
}

// reach is how people are asked about the run, if a client could be asked like this.
func (r *run) reach(client gate.Reach) gate.Reach {
	for _, g := range r.access() {
		if g.Asked() == access.AskedApprovers {
			return gate.ByApprovers
		}
	}
	return client
}

// takeTurn waits until one more script of the run's principal may run. While it waits, a run of theirs
// that waits for people gives its worker up.
func (rn *runner) takeTurn(ctx context.Context, r *run) (done func(), err error) {
	most := access.Least(r.access(), func(l access.Limits) int { return l.Workers })
	return rn.turns.Take(ctx, r.principal, most, func() {
		for _, other := range rn.roster.left(nil) {
			if other.principal == r.principal && other.evict() {
				return
			}
		}
	})
}

func (h *gateHost) Scope() gate.Scope {
	if h.runner.o.Access() == nil {
		return nil
	}
	return scope(h.runner.o.Gate.View(), h.profile, (*run)(h).access()...)
}

// A scoped is the host of calls that have no run.
type scoped struct {
	gate.Unattended
	scope gate.Scope
}

func (s scoped) Scope() gate.Scope { return s.scope }
