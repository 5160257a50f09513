package checkcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// Scripts is the command group "scripts", which shows the saved scripts.
func (con *Bridge) Scripts() *cobra.Command {
	group := &cobra.Command{Use: "scripts", Short: "The saved scripts that scripts can run"}
	list := &cobra.Command{
		Use: "list", Short: "List the saved scripts, and what is wrong with the broken ones", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, all, err := con.saved()
			if err != nil {
				return err
			}
			rows := []scripts.Row{}
			for _, s := range all {
				rows = append(rows, scripts.NewRow(s))
			}
			if con.JSON {
				return con.PrintJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintf(con.Err, "no saved scripts in %s\n", cfg.Scripts.Dir)
				return nil
			}
			table := [][]string{{"name", "file", "description"}}
			for _, r := range rows {
				table = append(table, []string{r.Name, r.File, r.Summary()})
			}
			return con.Table(table)
		},
	}
	show := &cobra.Command{
		Use: "show name", Short: "Print a saved script: how it is called, its file, its hash and its text", Args: cli.MinArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			cfg, all, err := con.saved()
			if err != nil {
				return err
			}
			for _, name := range names {
				s, ok := scripts.Find(all, name)
				if !ok {
					return fmt.Errorf("there is no saved script %q in %s", name, cfg.Scripts.Dir)
				}
				row := scripts.NewRow(s)
				row.Source = s.Source
				if con.JSON {
					if err := con.PrintJSON(row); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(con.Out, "file     %s\nhash     %s\n", filepath.Join(cfg.Scripts.Dir, s.File), s.Digest)
				if s.Problem != nil {
					fmt.Fprintf(con.Out, "problem  %s\n", canon.Escape(row.Problem))
				} else {
					fmt.Fprintf(con.Out, "call     %s\n", row.Declaration)
				}
				fmt.Fprintf(con.Out, "\n%s\n", canon.EscapeLines(strings.TrimRight(s.Source, "\n")))
			}
			return nil
		},
	}
	check := con.Older(&cobra.Command{
		Use: "check [name...]", Short: "Say what is wrong with the saved scripts", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error { return con.checkScripts(c.Context(), names) },
	}, "check")
	for _, c := range []*cobra.Command{list, show, check} {
		con.JSONFlag(c)
		group.AddCommand(c)
	}
	return group
}

// saved reads the configuration and the saved scripts.
func (con *Bridge) saved() (*config.Config, []scripts.Script, error) {
	cfg, err := con.Load()
	if err != nil {
		return nil, nil, err
	}
	all, err := scripts.Read(cfg.Scripts.Dir, int64(cfg.Sandbox.Source))
	return cfg, all, err
}

// A tried is what was found of the saved scripts.
type tried struct {
	rows   []scripts.Row
	broken []string // a line for each that cannot be run
}

// try reads the headers of the saved scripts that are named, or without names of all, and
// has a worker parse their text. Nothing is run.
func (con *Bridge) try(ctx context.Context, cfg *config.Config, names []string) (found tried, err error) {
	found.rows = []scripts.Row{}
	all, err := scripts.Read(cfg.Scripts.Dir, int64(cfg.Sandbox.Source))
	if err != nil || len(all)+len(names) == 0 {
		return found, err
	}
	for _, name := range names {
		if _, ok := scripts.Find(all, name); !ok {
			return found, fmt.Errorf("there is no saved script %q in %s", name, cfg.Scripts.Dir)
		}
	}
	parse, end, err := con.Parser(cfg)
	if err != nil {
		return found, err
	}
	defer end()
	for _, s := range all {
		if len(names) > 0 && !slices.Contains(names, s.Name) && !slices.Contains(names, s.File) {
			continue
		}
		if s.Problem == nil {
			s.Problem = parse(ctx, s)
		}
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		if s.Problem != nil {
			at := filepath.Join(cfg.Scripts.Dir, s.File) + s.Problem.Place()
			found.broken = append(found.broken, fmt.Sprintf("%s: %s", canon.Escape(at), canon.Escape(s.Problem.Message)))
		}
		found.rows = append(found.rows, scripts.NewRow(s))
	}
	return found, nil
}

// checkScripts is an older spelling of check, for the saved scripts alone.
func (con *Bridge) checkScripts(ctx context.Context, names []string) error {
	cfg, err := con.Load()
	if err != nil {
		return err
	}
	found, err := con.try(ctx, cfg, names)
	if err != nil {
		return err
	}
	if con.JSON {
		if err := con.PrintJSON(map[string]any{"ok": len(found.broken) == 0, "scripts": found.rows}); err != nil {
			return err
		}
	} else if con.PrintLines(found.broken); len(found.broken) == 0 {
		fmt.Fprintf(con.Out, "%s fine in %s\n", cli.Count(len(found.rows), "saved script"), cfg.Scripts.Dir)
	}
	return failedIf(len(found.broken) > 0)
}
