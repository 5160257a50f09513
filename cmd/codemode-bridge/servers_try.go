package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/doctor"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// tryServersCommand connects to servers and says how that went.
func tryServersCommand(con *console) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "test [name...]", Short: "Connect to servers, list their tools, and say what is wrong",
		Long: "Connects to the named servers, or with --all to every one that is not disabled, lists their tools and says\n" +
			"how long that took, or what is wrong, with the last lines that a program wrote to its standard error. The\n" +
			"exit code is 1 if one of them cannot be used. Where a program gets a login by itself, as mcp-remote does, the link is\n" +
			"shown and the login waited for.",
		Args: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return &cli.UsageError{Err: errors.New("servers test takes names, or --all")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return tryServers(c.Context(), con, args, all) },
	}
	c.Flags().BoolVar(&all, "all", false, "every server that is not disabled")
	c.ValidArgsFunction = con.completeServers
	con.JSONFlag(c)
	return c
}

func tryServers(ctx context.Context, con *console, names []string, all bool) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if names, err = chosenServers(cfg, names, all); err != nil {
		return err
	}
	rows := make([]doctor.Trial, len(names))
	var trying sync.WaitGroup
	logins := logins(con)
	defer logins.Close()
	for _, spec := range specsWithLogins(cfg, logins, con.Env) {
		if i := slices.Index(names, spec.Name); i >= 0 {
			trying.Go(func() { rows[i] = doctor.Try(ctx, spec, version, con.waitForLogin) })
		}
	}
	trying.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	failed := 0
	for _, r := range rows {
		if !r.OK {
			failed++
		}
	}
	if con.JSON {
		err = con.PrintJSON(rows)
	} else {
		err = printTried(con, rows)
	}
	if err == nil && failed > 0 {
		err = &cli.ExitError{Code: cli.ExitFailed}
	}
	return err
}

// waitForLogin shows where to log in to a server whose program waits for that.
func (con *console) waitForLogin(server, link string) {
	fmt.Fprintf(con.Err, "%s waits for a login; open this in a browser:\n\n  %s\n\n", server, link)
}

func printTried(con *console, rows []doctor.Trial) error {
	if err := con.Table(doctor.TrialTable(rows)); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Why != "" {
			fmt.Fprintf(con.Err, "%s: %s\n", r.Name, strings.ReplaceAll(r.Why, " | ", "\n  "))
		}
	}
	return nil
}
