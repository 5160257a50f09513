package main

import (
	"context"
	"fmt"
	"strconv"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// serversCommand shows the servers of the configuration.
func serversCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "servers", Short: "The servers that the bridge connects to"}
	list := &cobra.Command{
		Use: "list", Short: "Connect to every server and show its state", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return once(c.Context(), con, func(_ context.Context, p *parts) error {
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
				if err := lockProblem(con, p.cfg); err != nil {
					con.Told("warning: %v", err)
				}
				rows := []row{}
				for _, s := range p.upstreams.Status() {
					rows = append(rows, row{s.Name, string(p.cfg.Servers[s.Name].Type), fmt.Sprint(s.State), s.Tools, s.Protocol, s.Version, s.Err, s.BoxStatus()})
				}
				if con.JSON {
					return con.PrintJSON(rows)
				}
				table := [][]string{{"name", "type", "state", "tools", "protocol", "box", "why"}}
				for _, r := range rows {
					kept := ""
					if r.Box != nil {
						kept = r.Box.Is
					}
					table = append(table, []string{r.Name, r.Type, r.State, strconv.Itoa(r.Tools), r.Protocol, kept, cli.FirstLine(r.Why)})
				}
				return con.Table(table)
			})
		},
	}
	con.JSONFlag(list)
	group.AddCommand(list, serversLoginCommand(con), serversLogoutCommand(con))
	addServerEdits(con, group)
	return group
}

// withCatalog connects to the servers, or to the named one only, and calls look with
// their tools. The person at the command line sees all of them, whatever a profile
// hides from scripts.
func withCatalog(ctx context.Context, con *console, server string, look func(*catalog.Catalog, *catalog.View) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if server != "" {
		if _, err := chosenServers(cfg, []string{server}, false); err != nil {
			return err
		}
		cfg.Servers = map[string]*config.Server{server: cfg.Servers[server]}
	}
	return withoutRecords(ctx, con, cfg, func(_ context.Context, p *parts) error {
		complain(con, p)
		tools := p.gate.View().Catalog
		return look(tools, tools.View(nil))
	})
}
