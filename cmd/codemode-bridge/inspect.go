package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/lines"
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

// toolsCommand shows the tools of all servers.
func toolsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "tools", Short: "The tools that scripts can call"}
	var server string
	list := &cobra.Command{
		Use: "list", Short: "List the tools, all or those of one server", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withCatalog(c.Context(), con, server, func(tools *catalog.Catalog, v *catalog.View) error {
				var all []catalog.Item
				for _, s := range v.Servers() {
					for page := (catalog.PageQuery{Server: s.Server}); ; {
						result, err := v.Page(page)
						if err != nil {
							return err
						}
						all = append(all, result.Tools...)
						if page.Cursor = result.Next; page.Cursor == "" {
							break
						}
					}
				}
				if server != "" && len(all) == 0 {
					return fmt.Errorf("the server %q has no tools; servers test %s says more", server, server)
				}
				return printItems(con, tools, all)
			})
		},
	}
	list.Flags().StringVar(&server, "server", "", "only the tools of this `server`; no other is started")
	var from string
	search := &cobra.Command{
		Use: "search words...", Short: "Find tools by keywords", Args: cli.MinArgs(1),
		RunE: func(c *cobra.Command, words []string) error {
			return withCatalog(c.Context(), con, from, func(tools *catalog.Catalog, v *catalog.View) error {
				found := v.Search(catalog.SearchQuery{Query: strings.Join(words, " "), Server: from})
				if len(found.Unmatched) > 0 {
					fmt.Fprintf(con.Err, "no tool has: %s\n", strings.Join(found.Unmatched, ", "))
				}
				return printItems(con, tools, found.Tools)
			})
		},
	}
	search.Flags().StringVar(&from, "server", "", "only the tools of this `server`; no other is started")
	show := &cobra.Command{
		Use: "show name", Short: "Print the TypeScript declaration of a tool", Args: cli.MinArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			return withCatalog(c.Context(), con, "", func(tools *catalog.Catalog, v *catalog.View) error {
				all, missing := []catalog.Named{}, 0
				for _, name := range names {
					tool, err := v.Named(name)
					if err != nil {
						missing++
						fmt.Fprintln(con.Err, notFound(v, name))
						continue
					}
					if con.JSON {
						all = append(all, tool)
						continue
					}
					if tool.Policy != "" && tool.Policy != tool.Name {
						fmt.Fprintf(con.Out, "// in policies: %s\n", canon.Escape(tool.Policy))
					}
					fmt.Fprintln(con.Out, tool.Declaration)
				}
				if con.JSON {
					if err := con.PrintJSON(all); err != nil {
						return err
					}
				}
				if missing > 0 {
					return &cli.ExitError{Code: cli.ExitFailed}
				}
				return nil
			})
		},
	}
	for _, c := range []*cobra.Command{list, search, show} {
		con.JSONFlag(c)
		group.AddCommand(c)
	}
	group.AddCommand(toolsReview(con))
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

// printItems prints tools by the names that scripts use and, if it differs, the name
// that profiles match.
func printItems(con *console, v *catalog.Catalog, all []catalog.Item) error {
	if con.JSON {
		return con.PrintJSON(v.Named(all))
	}
	if len(all) == 0 {
		fmt.Fprintln(con.Err, "no tools")
		return nil
	}
	names, paths := [][]string{{"name"}}, [][]string{{"name", "in policies"}}
	differ := false
	for _, e := range all {
		path := ""
		if t, ok := v.Lookup(e.Name); ok && t.Path() != e.Name {
			path, differ = t.Path(), true
		}
		names, paths = append(names, []string{e.Name}), append(paths, []string{e.Name, path})
	}
	width, rows, below := con.Width(), names, false
	if differ {
		if room := lines.Room(paths, width); width == 0 || room >= lines.LastColumn {
			rows = paths
		} else {
			below = true
		}
	}
	room := 80
	if width > 0 {
		room = min(room, max(lines.LastColumn, lines.Room(rows, width)))
	}
	table := [][]string{append(rows[0], "summary")}
	for i, e := range all {
		summary := lines.Cut(cli.FirstLine(e.Summary), room)
		if path := paths[i+1][1]; below && path != "" {
			summary += "\nin policies: " + path
		}
		table = append(table, append(rows[i+1], summary))
	}
	return con.Table(table)
}

// notFound says that there is no tool of that name, and suggests similar ones.
func notFound(v *catalog.View, name string) string {
	text := fmt.Sprintf("there is no tool %q", name)
	if near := v.Near(name, 3); len(near) > 0 {
		return text + "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return text + "; find one with: codemode-bridge tools search WORDS"
}
