// Package checkcmd has the command that says what is wrong with a configuration, its saved
// scripts and its profiles, and those that show the saved scripts.
package checkcmd

import (
	"context"
	"errors"
	"fmt"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/explaincmd"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console
	Documents explaincmd.Documents

	From  func(file string)        // has Load read this file
	Shown func(file string) string // a path as the person wrote it
	Load  func() (*config.Config, error)
	// Secrets asks for the secrets of a configuration.
	Secrets func(ctx context.Context, cfg *config.Config) (*config.Config, error)
	// Remarks are what is no mistake in a configuration: what is probably not meant, and
	// what is only worth knowing.
	Remarks func(cfg *config.Config) (warnings, notes []string)
	// Parser returns a function that parses a script and returns nil if that works, and one
	// that ends the worker which does it.
	Parser func(cfg *config.Config) (parse func(context.Context, scripts.Script) *scripts.Problem, end func() error, err error)
	// Idle connects to the servers and finds what of the profiles has no effect.
	Idle func(ctx context.Context) (Idle, error)
}

// An Idle is what of the profiles has no effect on the tools that there are.
type Idle struct {
	Warnings        any      // as --json prints them
	Lines           []string // the same for people
	Profiles, Tools int      // that were looked at
}

// Check is the command that says what is wrong with a configuration and its saved scripts
// and, with --tools, what of its profiles has no effect.
func (con *Bridge) Check() *cobra.Command {
	var secrets, tools bool
	c := &cobra.Command{
		Use: "check [file]", Short: "Say what is wrong with the configuration and saved scripts, with line and column", Args: cli.MaxArgs(1),
		Long: "Reads the configuration and the saved scripts, and says what is wrong with them, and what is probably not meant.\n" +
			"Nothing is run and no server is started. With --tools it also connects to the servers, and warns of list entries\n" +
			"and rules of the profiles that match no tool, that a stricter one always overrules, or whose condition can never\n" +
			"be decided. The exit code is 3 if the configuration has a mistake, and 1 if only a script or a profile has one.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				con.From(args[0])
			}
			return con.check(c.Context(), secrets, tools)
		},
	}
	c.Flags().BoolVar(&secrets, "secrets", false, "also ask for the secrets that it names, which runs the commands of ${exec:...}")
	c.Flags().BoolVar(&tools, "tools", false, "also connect to the servers, and find what of the profiles has no effect")
	con.JSONFlag(c)
	return c
}

// A checked is what check --json prints.
type checked struct {
	OK       bool            `json:"ok"`
	Problems config.Problems `json:"problems"`
	Warnings []string        `json:"warnings"`
	Scripts  []scripts.Row   `json:"scripts"`
	Profiles any             `json:"profiles,omitempty"` // with --tools
}

func (con *Bridge) check(ctx context.Context, secrets, tools bool) error {
	cfg, err := con.Load()
	if err == nil && secrets {
		cfg, err = con.withSecrets(ctx, cfg)
	}
	if err != nil {
		return con.mistaken(err)
	}
	warnings, notes := con.Remarks(cfg)
	for _, warning := range warnings {
		con.Told("warning: %s", warning)
	}
	for _, note := range notes {
		con.Told("note: %s", note)
	}
	saved, err := con.try(ctx, cfg, nil)
	if err != nil {
		return err
	}
	var idle Idle
	if tools {
		if idle, err = con.Idle(ctx); err != nil {
			return err
		}
	}
	ok := len(saved.broken)+len(idle.Lines) == 0
	if con.JSON {
		if err := con.PrintJSON(checked{ok, config.Problems{}, warnings, saved.rows, idle.Warnings}); err != nil {
			return err
		}
		return failedIf(!ok)
	}
	fine := fmt.Sprintf("%s is fine: %s, %s", con.Shown(cfg.File), cli.Count(len(cfg.Servers), "server"), cli.Count(len(cfg.Profiles.Names()), "profile"))
	if n := len(saved.rows); n > 0 && len(saved.broken) == 0 {
		fine += ", " + cli.Count(n, "saved script")
	}
	fmt.Fprintln(con.Out, fine)
	con.PrintLines(saved.broken)
	if tools {
		con.printIdle(idle)
	}
	return failedIf(!ok)
}

// mistaken prints the mistakes of a configuration, and returns what ends the command;
// any other error as it is.
func (con *Bridge) mistaken(err error) error {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return err
	}
	if con.JSON {
		if err := con.PrintJSON(checked{Problems: problems, Warnings: []string{}, Scripts: []scripts.Row{}}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(con.Out, problems)
		fmt.Fprintln(con.Err, cli.Count(len(problems), "mistake"))
		if hint := con.Documents.Hint(problems); hint != "" {
			fmt.Fprintln(con.Err, "hint: "+hint)
		}
	}
	return &cli.ExitError{Code: cli.ExitConfig}
}

// withSecrets asks for the secrets of a configuration, and takes a server that lacks one
// for a mistake.
func (con *Bridge) withSecrets(ctx context.Context, cfg *config.Config) (*config.Config, error) {
	cfg, err := con.Secrets(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var problems config.Problems
	for _, name := range cfg.ServerNames() {
		problems = append(problems, cfg.Servers[name].Unready...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return cfg, nil
}

func (con *Bridge) printIdle(idle Idle) {
	switch {
	case idle.Profiles == 0:
		fmt.Fprintln(con.Out, "there are no profiles: scripts may call every tool")
	case len(idle.Lines) == 0:
		fmt.Fprintf(con.Out, "%s, %s: every entry and rule does something\n", cli.Count(idle.Profiles, "profile"), cli.Count(idle.Tools, "tool"))
	default:
		for _, line := range idle.Lines {
			fmt.Fprintln(con.Out, canon.Escape(line))
		}
		fmt.Fprintln(con.Err, cli.Count(len(idle.Lines), "warning"))
	}
}

// Profiles is profiles check: an older spelling of check --tools, for the profiles alone.
func (con *Bridge) Profiles() *cobra.Command {
	c := con.Older(&cobra.Command{
		Use: "check", Short: "Find entries and rules that match no known tool", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			idle, err := con.Idle(c.Context())
			if err != nil {
				return err
			}
			if !con.JSON {
				con.printIdle(idle)
			} else if err := con.PrintJSON(map[string]any{"ok": len(idle.Lines) == 0, "warnings": idle.Warnings}); err != nil {
				return err
			}
			return failedIf(len(idle.Lines) > 0)
		},
	}, "check --tools")
	con.JSONFlag(c)
	return c
}

// failedIf returns what ends a command that has printed what is wrong.
func failedIf(wrong bool) error {
	if wrong {
		return &cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}
