package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/lines"
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
		table = append(table, []string{r.Name, r.Type, r.State, strconv.Itoa(r.Tools), r.Protocol, kept, cli.FirstLine(r.Why)})
	}
	if con.JSON {
		return con.PrintJSON(rows)
	}
	return con.Table(table)
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
			return withOwners(c.Context(), con, names, func(v *catalog.View) error {
				all, missing := []map[string]string{}, 0
				for _, name := range names {
					text, err := v.Declare(name)
					if err != nil {
						missing++
						fmt.Fprintln(con.Err, notFound(v, name))
						continue
					}
					if con.JSON {
						all = append(all, map[string]string{"name": name, "declaration": text})
					} else {
						fmt.Fprintln(con.Out, text)
					}
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

// withOwners is withCatalog for some tools: it connects only to their servers, unless one
// of the tools can be nobody's.
func withOwners(ctx context.Context, con *console, names []string, look func(*catalog.View) error) error {
	return onceResting(ctx, con, func(ctx context.Context, p *parts) error {
		view := p.gate.View()
		var servers []string
		for _, name := range names {
			owners := view.Owners(name)
			if _, known := view.Catalog.Lookup(name); !known && len(owners) == 0 {
				servers = serverNames(p.cfg) // for names like it
				break
			}
			servers = append(servers, owners...)
		}
		p.only(servers...)
		p.ready(ctx, con)
		complain(con, p)
		return look(p.gate.View().Catalog.View(nil))
	})
}

// printItems prints tools by the names that scripts use and, if it differs, the name
// that profiles match.
func printItems(con *console, v *catalog.Catalog, all []catalog.Item) error {
	if con.JSON {
		if all == nil {
			all = []catalog.Item{}
		}
		return con.PrintJSON(all)
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
