package main

import (
	"fmt"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// allowServerCommand widens the box of a server.
func allowServerCommand(con *console) *cobra.Command {
	var more setup.Allowance
	c := &cobra.Command{
		Use: "allow name", Short: "Let a confined server write, read, reach or start more", Args: cli.ExactArgs(1),
		Long: "Adds to the box of a server what it needs besides, and shows how the configuration changes. The edit is held\n" +
			"like any that loosens: where there are approvers, config confirm takes it over. To confine a server, give it a\n" +
			"\"confine\" in the configuration; to allow it less, edit that.",
		Example: "  codemode-bridge servers allow files --write ~/notes --read ~/Pictures\n" +
			"  codemode-bridge servers allow tracker --net api.example.com --net '*.example.com:8443'",
		RunE: func(_ *cobra.Command, args []string) error { return allowServer(con, args[0], more) },
	}
	f := c.Flags()
	f.StringArrayVar(&more.Write, "write", nil, "a `folder` or file that it may change, or workspace; may be repeated")
	f.StringArrayVar(&more.Read, "read", nil, "a `folder` or file that it may read, or workspace; may be repeated")
	f.StringArrayVar(&more.Net, "net", nil, "a `host[:port]` that it may reach, *.domain for all below it; may be repeated")
	f.StringArrayVar(&more.Run, "run", nil, "a `program` that it may start, by its name in PATH or its path; may be repeated")
	c.ValidArgsFunction = con.completeServers
	con.JSONFlag(c)
	return c
}

func allowServer(con *console, name string, more setup.Allowance) error {
	if err := more.Resolve(); err != nil {
		return &cli.UsageError{Err: err}
	}
	err := editConfig(con, func(text []byte, cfg *config.Config) ([]byte, error) {
		s, ok := cfg.Servers[name]
		if !ok {
			return nil, unknownServer(cfg, name)
		}
		next, err := setup.Allow(text, setup.ServersKey(cfg)+"/"+name, s.Confine, more)
		if err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("%s: %w", name, err)}
		}
		if !con.JSON {
			fmt.Fprintln(con.Err, strings.Join(setup.Diff(con.HomeShort(cfg.File), text, next, setup.Secrets(text)), "\n"))
			con.Told("if the edit waits for an approver, codemode-bridge config confirm takes it over%s", withConfig(cfg, con.Env))
		}
		return next, nil
	})
	switch {
	case err != nil:
		return err
	case con.JSON:
		return con.PrintJSON(map[string]string{"server": name, "done": "allowed", "allowed": more.String()})
	}
	_, err = fmt.Fprintf(con.Out, "%s may %s\n", name, more)
	return err
}
