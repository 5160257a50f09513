package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// promoteCommand has a profile enforce what it only observes.
func promoteCommand(con *console) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "promote profile [rule|flow|list]", Short: "Enforce what a profile only observes", Args: cli.RangeArgs(1, 2),
		Long: "Takes an \"observe\" out of the configuration file, so that what was only decided and recorded counts: that of\n" +
			"a rule by its name or place (rules/0), of a flow by its place (flows/0), of a list or the default by its\n" +
			"name; without one of them, all that the profile observes. It prints the change; \"audit stats\" says what\n" +
			"would have come of it. As with any edit, a bridge with approvers holds what it loosens until one of them\n" +
			"confirms it.",
		Example: "  codemode-bridge profiles promote work big-files\n  codemode-bridge profiles promote work asklist --dry-run",
		RunE: func(_ *cobra.Command, args []string) error {
			return promote(con, args[0], strings.Join(args[1:], ""), dry)
		},
	}
	c.ValidArgsFunction = con.completeProfiles
	c.Flags().BoolVar(&dry, "dry-run", false, "print the change and make none")
	con.JSONFlag(c)
	return c
}

func promote(con *console, profile, what string, dry bool) error {
	var file string
	var before, after []byte
	var promoted []string
	err := editConfig(con, func(text []byte, cfg *config.Config) (next []byte, err error) {
		p, err := namedProfile(cfg.Profiles, profile)
		if err != nil {
			return nil, err
		}
		profile, file, before = p.Name(), cfg.File, text
		if after, promoted, err = setup.Promote(text, profile, what); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		if dry {
			return nil, errDryRun
		}
		return after, nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	if con.JSON {
		return con.PrintJSON(map[string]any{"profile": profile, "promoted": slices.Concat([]string{}, promoted), "file": file, "written": !dry})
	}
	con.PrintLines(setup.Diff(con.shown(file), before, after, setup.Secrets(before)))
	if dry {
		fmt.Fprintf(con.Err, "%s was not changed; without --dry-run, the profile %s would enforce: %s\n", con.shown(file), profile, strings.Join(promoted, ", "))
	} else {
		fmt.Fprintf(con.Err, "the profile %s enforces: %s; what that loosens waits, where there are approvers, for codemode-bridge config confirm\n", profile, strings.Join(promoted, ", "))
	}
	return nil
}
