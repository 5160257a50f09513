package main

import (
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// addServerEdits adds the commands that change which servers there are. They keep the
// file's comments and order, and write nothing that would be a mistake. A running
// bridge takes an edit over by itself.
func addServerEdits(con *console, group *cobra.Command) {
	remove := &cobra.Command{
		Use: "remove name", Short: "Remove a server from the configuration", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return editServer(con, args[0], "removed", func(text []byte, at string) ([]byte, error) { return jsonc.Remove(text, at) })
		},
	}
	enable := &cobra.Command{
		Use: "enable name", Short: "Enable a disabled server", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], false) },
	}
	disable := &cobra.Command{
		Use: "disable name", Short: "Disable a server, keeping it in the configuration", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], true) },
	}
	unconfined := false
	accept := &cobra.Command{
		Use: "accept name", Short: "Accept what the bridge knows of a server, and pin its version", Args: cli.ExactArgs(1),
		Long: "Accepts what the bridge knows of a server of the configuration, as servers known shows it: \"known\" is written,\n" +
			"and the version that was verified is pinned where none is. Its calls are then judged by what they do. Where the bridge\n" +
			"proposes a box for it and it has none, it is confined to that.",
		RunE: func(_ *cobra.Command, args []string) error { return acceptServer(con, args[0], !unconfined) },
	}
	cli.ConfineFlag(accept, &unconfined)
	for _, c := range []*cobra.Command{remove, enable, disable, accept} {
		c.ValidArgsFunction = con.completeServers
		con.JSONFlag(c)
	}
	group.AddCommand(setupOf(con).AddServer(), setupOf(con).AddServerJSON(), remove, enable, disable, accept, allowServerCommand(con), tryServersCommand(con), learnServerCommand(con), knownServersCommand(con))
}

// completeServers completes with the servers of the configuration.
func (con *console) completeServers(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := con.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cfg.ServerNames(), cobra.ShellCompDirectiveNoFileComp
}

// editServer changes a server that the configuration has.
func editServer(con *console, name, done string, edit func(text []byte, at string) ([]byte, error)) error {
	err := editConfig(con, func(text []byte, cfg *config.Config) ([]byte, error) {
		if _, ok := cfg.Servers[name]; !ok {
			return nil, unknownServer(cfg, name)
		}
		return edit(text, setup.ServersKey(cfg)+"/"+name)
	})
	if err != nil {
		return err
	}
	return setupOf(con).SayServer(name, done)
}

func unknownServer(cfg *config.Config, name string) error {
	known := "the configuration has none"
	if names := cfg.ServerNames(); len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return &cli.UsageError{Err: fmt.Errorf("there is no server %q; %s", name, known)}
}

// switchServer enables or disables a server.
func switchServer(con *console, name string, off bool) error {
	done := "enabled"
	if off {
		done = "disabled"
	}
	return editServer(con, name, done, func(text []byte, at string) ([]byte, error) {
		return setup.Switch(text, at, off)
	})
}

// chosenServers returns the names of the servers that a command is about: those given,
// which must exist and be enabled, or all enabled ones.
func chosenServers(cfg *config.Config, names []string, all bool) ([]string, error) {
	if all {
		return serverNames(cfg), nil
	}
	for _, name := range names {
		server, ok := cfg.Servers[name]
		if !ok {
			return nil, unknownServer(cfg, name)
		}
		if server.Disabled {
			return nil, &cli.UsageError{Err: fmt.Errorf("the server %q is disabled; servers enable %s turns it on", name, name)}
		}
	}
	return slices.Clone(names), nil
}
