package main

import (
	"context"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/running"

	"github.com/spf13/cobra"
)

// serversCommand shows the servers of the configuration.
func serversCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "servers", Short: "The servers that the bridge connects to"}
	list := &cobra.Command{
		Use: "list", Short: "Show the state of every server", Args: cli.NoArgs,
		Long: "Shows the state of every server: as the bridge has it that runs with this configuration or, if there is\nnone, after connecting to them all at once. servers test connects in any case.",
		RunE: func(c *cobra.Command, _ []string) error { return listServers(c.Context(), con) },
	}
	con.JSONFlag(list)
	group.AddCommand(list, loginCommands(con).Login(), loginCommands(con).Logout())
	addServerEdits(con, group)
	return group
}

// listServers shows how the servers are at the bridge that runs, or connects to them.
func listServers(ctx context.Context, con *console) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if err := lockProblem(con, cfg); err != nil {
		con.Told("warning: %v", err)
	}
	return onceTold(ctx, con, cfg, nil, func(_ context.Context, p *parts) error {
		return running.Print(&con.Console, cfg, running.Statuses(p.states()))
	})
}

// withCatalog calls look with the tools of the servers, or of the named one only, as the
// bridge that runs has them, or after connecting to them. The person at the command line sees all of them, whatever a profile
// hides from scripts.
func withCatalog(ctx context.Context, con *console, server string, look func(*catalog.Catalog, *catalog.View) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	var names []string
	if server != "" {
		if names, err = chosenServers(cfg, []string{server}, false); err != nil {
			return err
		}
	}
	return onceTold(ctx, con, cfg, names, func(_ context.Context, p *parts) error {
		complain(con, p)
		tools := p.gate.View().Catalog
		return look(tools, tools.View(nil))
	})
}

// withOwners is withCatalog for some tools: it waits for their servers alone, unless one of
// the tools can be nobody's.
func withOwners(ctx context.Context, con *console, names []string, look func(*catalog.View) error) error {
	return onceResting(ctx, con, func(ctx context.Context, p *parts) error {
		view := p.gate.View()
		var servers []string
		for _, name := range names {
			owners := view.Owners(name)
			if view.Catalog.Resolve(name).Tool == nil && len(owners) == 0 {
				servers = serverNames(p.cfg) // for names like it
				break
			}
			servers = append(servers, owners...)
		}
		if told := askRunning(ctx, con, p.cfg, append([]string{}, servers...)); told != nil {
			p.hear(told)
		} else if err := p.only(ctx, con, servers...); err != nil {
			return err
		}
		complain(con, p)
		return look(p.gate.View().Catalog.View(nil))
	})
}
