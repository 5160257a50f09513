package main

import (
	"context"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
)

// anew gives do what it takes to decide recorded calls by the configuration. No server is
// started: its tools are as the bridge has them that runs with it, or as they were last.
func (con *console) anew(ctx context.Context, do func(audit.ReplayOptions) error) error {
	return onceResting(ctx, con, func(ctx context.Context, p *parts) error {
		if told := askRunning(ctx, con, p.config(), serverNames(p.config())); told != nil {
			p.hear(told)
		}
		view := p.gate.View()
		return do(audit.ReplayOptions{Policy: view.Profiles, Facts: factsOf(view, p.roots(con).Workspace(ctx, nil, false))})
	})
}

// factsOf says what policy may know today of calls.
func factsOf(view *gate.View, ws workspace.Workspace) audit.Facts {
	return func(server, tool string, args map[string]any) (profiles.Call, bool) {
		named := profiles.Call{Server: server, Tool: tool, TrustAnnotations: view.Trusted[server]}
		t, ok := view.Catalog.Tool(catalog.ToolRef{Server: server, Tool: tool})
		if !ok {
			if t, ok = catalog.Method(named.Path()); !ok {
				return named, false
			}
		}
		call := view.Facts(t)[0]
		call.Meaning = view.Meaning(t, args, ws)
		return call, true
	}
}
