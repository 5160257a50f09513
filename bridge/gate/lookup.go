package gate

import (
	"context"
	"fmt"
	"slices"

	"codemode-bridge/bridge/catalog"
)

// lookup finds a tool. Nothing is decided about one before its server has listed it since
// the start: lookup waits for the server that the name is one of, and for no other. What
// is about all servers waits a short time for those that are missing.
func (g *Gate) lookup(ctx context.Context, r *Run, name string) (*View, *catalog.Tool, error) {
	if method, ok := catalog.Method(name); ok {
		if method.Server == "" {
			g.gather(ctx) // from the servers that are connected
		}
		return g.View(), method, nil
	}
	view := g.View()
	tool, ok := r.Names.Find(view.Catalog, name)
	switch {
	case ok && tool.Server == "":
		g.Gather(ctx)
		view = g.View()
	case ok && tool.Stale:
		g.await(ctx, tool.Server)
		view = g.View()
	case !ok:
		for _, server := range view.Owners(name) { // hidden ones too: what is denied is denied by the same words from the start
			g.await(ctx, server)
			if view = g.View(); ctx.Err() != nil {
				break
			}
		}
	}
	tool, ok = r.Names.Take(view.Catalog, name)
	switch {
	case !ok:
		unknown := unknownTool(seen(r, view), name)
		unknown.Later = len(visibleOwners(r, view, name)) > 0
		return nil, nil, unknown
	case tool.Stale && !Within(r.host.Scope(), tool.Server):
		return nil, nil, unknownTool(seen(r, view), name)
	case tool.Stale:
		return nil, nil, &UnknownToolError{Name: name, Later: true, Message: fmt.Sprintf("%s is known from the last run only: server %s has not listed its tools yet", name, tool.Server)}
	}
	return view, tool, nil
}

// Gather waits a short time for the servers whose tools are unknown, if there are any.
func (g *Gate) Gather(ctx context.Context) {
	if !g.View().Complete {
		g.gather(ctx)
	}
}

// Owners returns the servers that may have a tool of this name, in scripts or in policies,
// and have not listed their tools since the start.
func (v *View) Owners(name string) []string {
	return v.owners(name, func(string, string) bool { return true })
}

// visibleOwners is Owners as far as a run may know of the tool.
func visibleOwners(r *Run, v *View, name string) []string {
	return v.owners(name, func(server, tool string) bool { return mayKnow(r, v, server, tool) })
}

func (v *View) owners(name string, may func(server, tool string) bool) (all []string) {
	meant := v.Catalog.Owners(name)
	for _, s := range slices.Concat(v.Awaited, v.Cached) {
		if slices.ContainsFunc(meant, func(m catalog.ToolRef) bool { return m.Server == s && may(s, m.Tool) }) {
			all = append(all, s)
		}
	}
	return all
}
