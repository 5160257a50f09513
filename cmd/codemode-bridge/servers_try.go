package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/setupcmd"

	"github.com/spf13/cobra"
)

// tryServersCommand connects to servers and says how that went.
func tryServersCommand(con *console) *cobra.Command {
	var all, boxed bool
	c := &cobra.Command{
		Use: "test [name...]", Short: "Connect to servers, list their tools, and say what is wrong",
		Long: "Connects to the named servers, or without names to every one that is not disabled, lists their tools and says\n" +
			"how long that took, or what is wrong, with the last lines that a program wrote to its standard error. The\n" +
			"exit code is 1 if one of them cannot be used. Where a program gets a login by itself, as mcp-remote does, the link is\n" +
			"shown and the login waited for.\n" +
			"With --confined each program is tried in its box: the one it has, or the one that is proposed for it, or\n" +
			"else the tightest, which writes nothing and reaches nobody. It says which parts hold here and what was\n" +
			"refused; the configuration stays as it is.",
		Args: func(c *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return &cli.UsageError{Err: errors.New("servers test takes names, or none for all servers")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return tryServers(c.Context(), con, args, boxed) },
	}
	c.Flags().BoolVar(&all, "all", false, "every server that is not disabled")
	con.OlderFlag(c, "all", "servers test")
	c.Flags().BoolVar(&boxed, "confined", false, "try the programs in a box")
	c.ValidArgsFunction = con.completeServers
	con.JSONFlag(c)
	return c
}

func tryServers(ctx context.Context, con *console, names []string, boxed bool) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if names, err = chosenServers(cfg, names, len(names) == 0); err != nil {
		return err
	}
	var from map[string]string
	if boxed {
		if cfg, from, err = inBoxes(con, cfg, names); err != nil {
			return err
		}
		names = slices.Sorted(maps.Keys(from))
	}
	var named []string
	for _, name := range names {
		named = append(named, ofServer(name)...)
	}
	if cfg, err = con.withSecrets(ctx, cfg, named...); err != nil {
		return err
	}
	rows := make([]doctor.Trial, len(names))
	var trying sync.WaitGroup
	said := con.Wait(names)
	logins := logins(con)
	defer logins.Close()
	for _, spec := range specsWithLogins(cfg, logins, con.Env) {
		if i := slices.Index(names, spec.Name); i >= 0 {
			trying.Go(func() {
				rows[i] = doctor.Try(ctx, spec, version, con.waitForLogin)
				said.Answered(spec.Name)
			})
		}
	}
	trying.Wait()
	said.Close()
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
		if boxed {
			for _, line := range doctor.BoxWords(rows, from) {
				con.Told("%s", line)
			}
		}
	}
	if err == nil && failed > 0 {
		err = &cli.ExitError{Code: cli.ExitFailed}
	}
	return err
}

// inBoxes returns the configuration with a box for each of the named servers, and where
// that comes from.
func inBoxes(con *console, cfg *config.Config, names []string) (*config.Config, map[string]string, error) {
	text, err := os.ReadFile(cfg.File)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	boxes := setup.NewBoxes(clientSystem(con), cfg.Evaluation.Workspace...)
	from := make(map[string]string)
	for _, name := range names {
		if cfg.Servers[name].Type != config.KindStdio {
			continue
		}
		if text, from[name], err = boxes.TryIn(text, setup.ServersKey(cfg)+"/"+name); err != nil {
			return nil, nil, err
		}
	}
	if len(from) == 0 {
		return nil, nil, &cli.UsageError{Err: errors.New("only programs of this machine have boxes: servers with a \"command\"")}
	}
	cfg, err = con.parseFile(cfg.File, text)
	return cfg, from, err
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

// tryAdded connects to a server that was just added.
func tryAdded(ctx context.Context, con *console, name string) (tried setupcmd.Tried, err error) {
	cfg, err := con.load()
	if err != nil {
		return tried, err
	}
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	if cfg, err = con.withSecrets(ctx, cfg, ofServer(name)...); err != nil {
		return tried, err
	}
	logins := logins(con)
	defer logins.Close()
	for _, spec := range specsWithLogins(cfg, logins, con.Env) {
		if spec.Name != name {
			continue
		}
		t := doctor.Try(ctx, spec, version, nil)
		f := doctor.Found(t, cfg.Servers[name].Auth.Type == config.AuthNone, doctor.Options{
			Typed: func(command string) string { return typed(con, command) }, Limit: pinTime,
		})
		tried = setupcmd.Tried{OK: t.OK, Tools: len(t.Tools), Text: canon.Escape(canon.Redact(f.Text)), Do: f.Do}
		for _, line := range f.Said {
			tried.Said = append(tried.Said, canon.Escape(canon.Redact(line)))
		}
	}
	return tried, nil
}
