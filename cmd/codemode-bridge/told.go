package main

import (
	"context"
	"slices"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/running"
)

// askRunning asks the bridge that runs with this configuration, and waits until the named
// servers, or all for nil, have connected or failed there. It is nil if there is none that
// can be asked, and says why.
func askRunning(ctx context.Context, con *console, cfg *config.Config, names []string) *running.Bridge {
	folders, err := instanceFolders(con)
	if err != nil {
		return nil // no bridge could be asked, nor run
	}
	told, why := running.Asker{Sources: running.Sources(folders, cfg.File), Version: version, Configuration: running.Fingerprint(cfg), Wait: con.waitFor}.Ask(ctx, names)
	switch {
	case told != nil:
		con.Told("servers as the bridge has them %s", told.Serves())
	case why != "":
		con.Told("%s: it is not asked", why)
	}
	return told
}

// waitFor tells of servers of the configuration that are waited for.
func (con *console) waitFor(names []string) *cli.Waiting {
	return con.WaitOr(names, func(name string) string { return typed(con, "servers disable "+name) })
}

// hear takes the states and tools of servers from a bridge that runs, in place of our own
// connections: nothing here can call a tool then.
func (p *parts) hear(told *running.Bridge) {
	p.told.Store(told)
	p.views.Refresh()
}

// states are the states of all servers, sorted by name.
func (p *parts) states() []upstream.Status {
	if told := p.told.Load(); told != nil {
		return slices.DeleteFunc(told.States(), func(s upstream.Status) bool { return p.config().Servers[s.Name] == nil })
	}
	return p.upstreams.Status()
}

// boxed is what holds the program of a server now; nil without a box. Of a bridge in another
// folder it is not known: boxes may depend on that.
func (p *parts) boxed(server string) *upstream.Boxed {
	told := p.told.Load()
	if told == nil {
		return p.upstreams.Boxed(server)
	}
	for _, s := range told.States() {
		if s.Name == server && told.Folder == p.folder() {
			return s.Box
		}
	}
	return nil
}
