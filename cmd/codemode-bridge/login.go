package main

import (
	"context"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/logincmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
)

// logins are the logins of the user, and of each person.
func logins(con *console) *logincmd.Logins {
	return logincmd.Open(con.Env, logincmd.Kept{Logins: con.shared.Logins, Accounts: con.shared.Accounts})
}

// specsWithLogins is specs with the logins.
func specsWithLogins(cfg *config.Config, logins *logincmd.Logins, env config.Env) []upstream.Spec {
	return logins.Authorize(cfg, specs(cfg, env))
}

// loginCommands are the commands that log in to servers, and out.
func loginCommands(con *console) *logincmd.Bridge {
	return &logincmd.Bridge{
		Console: &con.Console, Load: con.load, Open: func() *logincmd.Logins { return logins(con) }, Typed: func(command string) string { return typed(con, command) },
		Ready: func(ctx context.Context, cfg *config.Config, name string) (*config.Config, error) {
			return con.withSecrets(ctx, cfg, append(ofServer(name), storecmd.Pointers...)...)
		},
		Record: func(ctx context.Context, cfg *config.Config, do func(pins.Recorder) error) error {
			return recordReview(ctx, con, cfg, do)
		},
	}
}
