package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// serversCommand shows the servers of the configuration.
func serversCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "servers", Short: "The servers that the bridge connects to"}
	list := &cobra.Command{
		Use: "list", Short: "Show the state of every server", Args: cli.NoArgs,
		Long: "Shows the state of every server: as the bridge has it that serves windows of this configuration or, if there\nis none, after connecting to them all at once. servers test connects in any case.",
		RunE: func(c *cobra.Command, _ []string) error { return listServers(c.Context(), con) },
	}
	con.JSONFlag(list)
	group.AddCommand(list, serversLoginCommand(con), serversLogoutCommand(con))
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
	if at, ok := runningBridge(ctx, con, cfg); ok {
		con.Told("as the bridge has them that serves %s (process %d)", cli.Count(len(at.Clients), "window"), at.PID)
		return printServers(con, cfg, at.Servers)
	}
	return withoutRecords(ctx, con, cfg, func(_ context.Context, p *parts) error {
		servers, _ := p.shared().Status()
		return printServers(con, cfg, servers)
	})
}

// runningBridge asks for the status of the bridge that has served windows of this
// configuration for the longest, if there is one of this version with these servers.
func runningBridge(ctx context.Context, con *console, cfg *config.Config) (oldest instance.Status, found bool) {
	folders, err := instanceFolders(con)
	if err != nil {
		return oldest, false
	}
	for _, meeting := range instance.In(folders, cfg.File) {
		s, err := meeting.Status(ctx)
		if err != nil || s.Version != version || found && oldest.Since.Before(s.Since) {
			continue // it has ended or is about to, or another one is asked
		}
		same := slices.EqualFunc(s.Servers, cfg.ServerNames(), func(s instance.ServerStatus, name string) bool {
			return s.Name == name && (s.State == string(upstream.Disabled)) == cfg.Servers[name].Disabled
		})
		if same {
			oldest, found = s, true
		}
	}
	return oldest, found
}

func printServers(con *console, cfg *config.Config, servers []instance.ServerStatus) error {
	type row struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		State    string `json:"state"`
		Tools    int    `json:"tools"`
		Protocol string `json:"protocol,omitempty"`
		Version  string `json:"version,omitempty"`
		Why      string `json:"why,omitempty"`

		Box *upstream.BoxStatus `json:"box,omitempty"`
	}
	rows, table := []row{}, [][]string{{"name", "type", "state", "tools", "protocol", "box", "why"}}
	for _, s := range servers {
		r := row{s.Name, string(cfg.Servers[s.Name].Type), s.State, s.Tools, s.Protocol, s.Version, s.Why, nil}
		kept := ""
		if len(s.Box) > 0 {
			if err := json.Unmarshal(s.Box, &r.Box); err != nil {
				return fmt.Errorf("reading the box of server %s: %w", s.Name, err)
			}
			kept = r.Box.Is
		}
		rows = append(rows, r)
		table = append(table, []string{r.Name, r.Type, r.State, strconv.Itoa(r.Tools), r.Protocol, kept, cli.FirstLine(upstream.Brief(r.Why))})
	}
	if con.JSON {
		return con.PrintJSON(rows)
	}
	return con.Table(table)
}

// withCatalog connects to the servers, or to the named one only, and calls look with
// their tools. The person at the command line sees all of them, whatever a profile
// hides from scripts.
func withCatalog(ctx context.Context, con *console, server string, look func(*catalog.Catalog, *catalog.View) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	var below []string
	if server != "" {
		if _, err := chosenServers(cfg, []string{server}, false); err != nil {
			return err
		}
		below = ofServer(server)
	}
	if cfg, err = con.withSecrets(ctx, cfg, below...); err != nil {
		return err
	}
	if server != "" {
		cfg.Servers = map[string]*config.Server{server: cfg.Servers[server]}
	}
	return onceReady(ctx, con, cfg, func(_ context.Context, p *parts) error {
		complain(con, p)
		tools := p.gate.View().Catalog
		return look(tools, tools.View(nil))
	})
}

// withOwners is withCatalog for some tools: it connects only to their servers, unless one
// of the tools can be nobody's.
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
		if err := p.only(ctx, con, servers...); err != nil {
			return err
		}
		complain(con, p)
		return look(p.gate.View().Catalog.View(nil))
	})
}
