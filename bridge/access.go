package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Who may see and call what is decided anew for each list of tools, for each call of a tool, and
// at the gate for each call of a script.

// rightsOf is what whoever a request comes from has, at the endpoint or in the window that
// it came through.
func (o *Options) rightsOf(ctx context.Context, extra *mcp.RequestExtra) access.Rights {
	p := rpc.Caller(ctx, extra)
	return o.Access().For(p.Name, p.Groups).To(access.Bound(ctx))
}

// policyOf are the profiles of a view.
func policyOf(view *gate.View) access.Policy {
	return access.Policy{Profiles: view.Profiles.Names(), Default: view.Profiles.Default().Name(), Alone: view.Profiles.Alone()}
}

// scope is what somebody reaches under a profile; the empty one is what binds eval.
func scope(view *gate.View, profile string, rights ...access.Rights) gate.Scope {
	if profile == "" {
		profile = view.Profiles.Default().Name()
	}
	return access.Scope{Profile: profile, Rights: rights}
}

// A menu is the tools that clients of the same rights may call under a view, by name.
type menu struct {
	tools    map[string]offered
	unlisted []string // those that they need not see
}

// menus are the menus of the present view, by it and by the key of rights.
type menus struct {
	s    *Server
	made sync.Map
}

func (m *menus) of(ctx context.Context, extra *mcp.RequestExtra) *menu {
	s := m.s
	view, g := s.o.Gate.View(), s.o.rightsOf(ctx, extra)
	key := [...]any{view, g.Key()}
	if known, ok := m.made.Load(key); ok {
		return known.(*menu)
	}
	made := s.wanted(view, g, g.Full(s.o.Full))
	if len(made.tools) > 0 { // nothing is kept of an endpoint whose profile somebody made up
		m.made.Store(key, made)
	}
	return made
}

// list makes a list of all tools that of one client: those that its principal may call, without those that
// need not be seen. These answer if they are called, since not every client takes notice of changes.
func (m *menus) list(ctx context.Context, extra *mcp.RequestExtra, result mcp.Result) {
	all, ok := result.(*mcp.ListToolsResult)
	if !ok {
		return
	}
	mine, tools := m.of(ctx, extra), []*mcp.Tool{}
	for _, t := range all.Tools {
		if one, ok := mine.tools[t.Name]; ok && !slices.Contains(mine.unlisted, t.Name) {
			tools = append(tools, one.tool)
		}
	}
	if all.Tools = tools; m.s.o.Access() != nil {
		all.CacheScope = "private" // no cache in between gives it to somebody else
	}
}

// admitted has tools answer only those who may call it. To all others they do not exist.
func (m *menus) admitted() mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mine, ok := m.of(ctx, req.Extra).tools[req.Params.Name]
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", req.Params.Name)}
		}
		return mine.handler(ctx, req)
	}
}

// AccessChanged tells clients that they may have other tools: who may call what has changed.
func (s *Server) AccessChanged() {
	s.rebuild.Lock()
	delete(s.tools, "eval") // adding it again tells clients
	s.rebuild.Unlock()
	s.retool()
}

// standard is the profile of eval for somebody, unless they name one.
func (o *Options) standard(g access.Rights, named string) (profile string, err error) {
	if named != "" {
		return named, nil
	}
	for _, e := range g.Evals(policyOf(o.Gate.View())) {
		if e.Tool == "eval" {
			return e.Profile, nil
		}
	}
	if why := g.Refuses(o.Gate.View().Profiles.Default().Name(), ""); why != "" {
		return "", errors.New(why + ": name a profile, or ask whoever runs the bridge for access")
	}
	return "", nil
}

// access is what the run's principal has now, and what the client has that it went on for.
func (r *run) access() []access.Rights {
	rules := r.runner.o.Access()
	all := []access.Rights{rules.For(r.principal, r.groups)}
	if now := r.joined.Load(); now != nil {
		all = append(all, rules.For(r.principal, *now))
	}
	return all
}

// join has the run reach no more than a client has that it goes on for.
func (r *run) join(c claimant) {
	if !c.anyone {
		r.joined.Store(&c.groups)
	}
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
