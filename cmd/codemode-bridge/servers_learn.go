package main

import (
	"context"

	"codemode-bridge/bridge/config"
	"codemode-bridge/cmd/codemode-bridge/boxcmd"

	"github.com/spf13/cobra"
)

// learnServerCommand runs a server without a box, and proposes one.
func learnServerCommand(con *console) *cobra.Command {
	c := (&boxcmd.Bridge{
		Console: &con.Console, Version: version, Load: con.load, Worker: worker,
		Usable: func(cfg *config.Config, name string) error {
			_, err := chosenServers(cfg, []string{name}, false)
			return err
		},
		Ready: func(ctx context.Context, cfg *config.Config, name string) (*config.Config, error) {
			return con.withSecrets(ctx, cfg, ofServer(name)...)
		},
		OwnFiles: func(cfg *config.Config) []string { return ownFiles(con, cfg) },
		Edit:     func(edit func([]byte, *config.Config) ([]byte, error)) error { return editConfig(con, edit) },
		Flag:     func(cfg *config.Config) string { return withConfig(cfg, con.Env) },
	}).Learn()
	c.ValidArgsFunction = con.completeServers
	return c
}
