package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/observed"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/sandbox"

	"github.com/spf13/cobra"
)

// scriptsCommand shows the saved scripts.
func scriptsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "scripts", Short: "The saved scripts that scripts can run"}
	list := &cobra.Command{
		Use: "list", Short: "List the saved scripts, and what is wrong with the broken ones", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, all, err := readScripts(con)
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
			cfg, all, err := readScripts(con)
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
	check := &cobra.Command{
		Use: "check [name...]", Short: "Say what is wrong with the saved scripts, with line and column", Args: cobra.ArbitraryArgs,
		Long: "Reads the headers of all saved scripts, or of those that are named, and has a worker parse their text. Nothing is run.",
		RunE: func(c *cobra.Command, names []string) error { return checkScripts(c.Context(), con, names) },
	}
	for _, c := range []*cobra.Command{list, show, check} {
		con.JSONFlag(c)
		group.AddCommand(c)
	}
	return group
}

// readScripts reads the configuration and the saved scripts.
func readScripts(con *console) (*config.Config, []scripts.Script, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, nil, err
	}
	all, err := scripts.Read(cfg.Scripts.Dir, int64(cfg.Sandbox.Source))
	return cfg, all, err
}

func checkScripts(ctx context.Context, con *console, names []string) error {
	cfg, all, err := readScripts(con)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := scripts.Find(all, name); !ok {
			return fmt.Errorf("there is no saved script %q in %s", name, cfg.Scripts.Dir)
		}
	}
	program, err := worker()
	if err != nil {
		return err
	}
	pool, err := sandbox.NewPool(sandbox.Options{Worker: program, Limits: limits(cfg.Sandbox), Warm: warm(0), MaxWorkers: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	rows, broken := []scripts.Row{}, 0
	for _, s := range all {
		if len(names) > 0 && !slices.Contains(names, s.Name) && !slices.Contains(names, s.File) {
			continue
		}
		if s.Problem == nil {
			s.Problem = parsed(ctx, pool, s)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.Problem != nil {
			broken++
			if !con.JSON {
				at := filepath.Join(cfg.Scripts.Dir, s.File) + s.Problem.Place()
				fmt.Fprintf(con.Out, "%s: %s\n", canon.Escape(at), canon.Escape(s.Problem.Message))
			}
		}
		rows = append(rows, scripts.NewRow(s))
	}
	switch {
	case con.JSON:
		if err := con.PrintJSON(map[string]any{"ok": broken == 0, "scripts": rows}); err != nil {
			return err
		}
	case broken == 0:
		fmt.Fprintf(con.Out, "%s fine in %s\n", cli.Count(len(rows), "saved script"), cfg.Scripts.Dir)
	}
	if broken > 0 {
		return &cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}

// parsed has a worker parse a script, and returns the error as a problem; nil if there
// is none.
func parsed(ctx context.Context, pool *sandbox.Pool, s scripts.Script) *scripts.Problem {
	err := pool.Check(ctx, s.Source)
	var wrong *sandbox.ScriptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &scripts.Problem{Line: wrong.Position.Line, Column: wrong.Position.Column, Message: wrong.Message}
	default:
		return &scripts.Problem{Message: err.Error()}
	}
}

// readSaved reads the saved scripts at the start. If that fails, the bridge works
// without them.
func (p *parts) readSaved(cfg *config.Config) {
	all, err := scripts.Read(cfg.Scripts.Dir, int64(cfg.Sandbox.Source))
	if err != nil {
		p.log.Warn("the saved scripts can't be read", "err", err)
	}
	p.views.SetScripts(catalogued(all))
}

// followSaved takes over changed scripts until ctx ends, and has each parsed.
func (p *parts) followSaved(ctx context.Context, cfg *config.Config) {
	if cfg.Scripts.Dir == "" {
		return
	}
	scripts.Watch(ctx, cfg.Scripts.Dir, func(all []scripts.Script) {
		p.views.SetScripts(catalogued(all))
		for _, s := range all {
			if s.Problem != nil {
				p.log.Warn("a saved script can't be run", "file", s.File, "err", s.Problem)
			}
		}
		p.views.Refresh()
	}, scripts.WatchOptions{
		Max:   int64(cfg.Sandbox.Source),
		Check: func(ctx context.Context, s scripts.Script) *scripts.Problem { return parsed(ctx, p.pool, s) },
		Lost:  func(err error) { p.log.Warn("the saved scripts can't be read; the last ones stay", "err", err) },
	})
}

// catalogued converts saved scripts for package catalog.
func catalogued(all []scripts.Script) []catalog.Script {
	var named []catalog.Script
	for _, s := range all {
		if s.Name == "" {
			continue // nothing could call it
		}
		saved := catalog.Script{Name: s.Name, Description: s.Description, Input: s.Input, Output: s.Output, Source: s.Source, Digest: s.Digest}
		if s.Problem != nil {
			saved.Problem = s.Problem.Error()
		}
		named = append(named, saved)
	}
	return named
}

// observe learns from an answer.
func (p *parts) observe(tool *catalog.Tool, answer gate.Answer) {
	media := slices.ContainsFunc(answer.Content, func(c gate.Content) bool { return c.Type != "text" })
	p.observed.Note(observedTool(tool), observed.Answer{Text: answer.Text(), Value: answer.Structured, Media: media})
}

// observation tells of past answers.
func (p *parts) observation(tool *catalog.Tool, limit int) catalog.Observation {
	return catalog.Observation(p.observed.Type(observedTool(tool), limit))
}

func observedTool(tool *catalog.Tool) observed.Tool {
	return observed.Tool{Server: tool.Server, Name: tool.Name, Digest: tool.Digest}
}
