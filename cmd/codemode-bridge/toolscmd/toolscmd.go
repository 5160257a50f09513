// Package toolscmd has the commands about the tools that scripts can call: "tools". They
// list and find tools, show how each differs from what somebody accepted, accept or block
// it, and write, check and accept the lock file.
package toolscmd

import (
	"context"
	"fmt"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
	Pins func(cfg *config.Config) *pins.Store // the definitions that were accepted
	// Secrets are what is hidden in all that is shown; the keyring and commands are asked for them.
	Secrets func(ctx context.Context, cfg *config.Config) (*recorder.Secrets, error)
	Typed   func(command string) string // a command as the person would type it
	// Catalog connects to the servers, or to the named one only, and calls look with their
	// tools.
	Catalog func(ctx context.Context, server string, look func(*catalog.Catalog, *catalog.View) error) error
	// Owners is Catalog for the tools of these names: it connects to their servers, or to
	// all if one of the names can be no tool's.
	Owners func(ctx context.Context, names []string, look func(*catalog.View) error) error
	// List asks all servers of a lock file for their tools, without a store.
	List func(ctx context.Context, cfg *config.Config) (map[string]Listing, error)
	// Identities tell what each server is on any machine, by name.
	Identities func(cfg *config.Config) map[string]string
	// Admin identifies the person at the terminal as one who may accept and block tools.
	Admin func(ctx context.Context, cfg *config.Config, fromStdin bool) (name string, err error)
	// Record calls do with what records to the audit log.
	Record func(ctx context.Context, cfg *config.Config, do func(pins.Recorder) error) error
}

// Command is the command group "tools".
func (con *Bridge) Command() *cobra.Command {
	group := &cobra.Command{Use: "tools", Short: "The tools that scripts can call"}
	var server string
	list := &cobra.Command{
		Use: "list", Short: "List the tools, all or those of one server", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return con.Catalog(c.Context(), server, func(tools *catalog.Catalog, v *catalog.View) error {
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
			return con.Catalog(c.Context(), from, func(tools *catalog.Catalog, v *catalog.View) error {
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
			return con.Owners(c.Context(), names, func(v *catalog.View) error {
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
	group.AddCommand(con.review(), con.lock())
	return group
}

// printItems prints tools by the names that scripts use and, if it differs, the name
// that profiles match.
func printItems(con *Bridge, v *catalog.Catalog, all []catalog.Item) error {
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
