package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/cmd/codemode-bridge/secretscmd"
)

// withSecrets asks for the secrets that a configuration names, at or below JSON pointers
// if there are any, and fills them in. It runs the commands that the configuration names
// for that, except those that wait for an approver, whose secrets are missing. It reads the
// configuration again, so it comes before everything that changes one.
func (con *console) withSecrets(ctx context.Context, cfg *config.Config, below ...string) (*config.Config, error) {
	all := cfg.References(below...)
	held, err := con.heldCommands(cfg, all)
	if err != nil || len(all) == 0 {
		return cfg, err
	}
	found := con.resolver(cfg).Resolve(ctx, slices.DeleteFunc(all, func(r secrets.Reference) bool { return held[r].Err != nil }))
	maps.Copy(found, held)
	return cfg.WithSecrets(found)
}

// withSecretsInForce is withSecrets for a configuration of which nothing waits: one that
// somebody has just confirmed, or with which a bridge begins.
func (con *console) withSecretsInForce(ctx context.Context, cfg *config.Config, below ...string) (*config.Config, error) {
	all := cfg.References(below...)
	if len(all) == 0 {
		return cfg, nil
	}
	return cfg.WithSecrets(con.resolver(cfg).Resolve(ctx, all))
}

// heldCommands returns those of the references whose commands nobody has confirmed, where
// somebody has to.
func (con *console) heldCommands(cfg *config.Config, all []secrets.Reference) (map[secrets.Reference]secrets.Secret, error) {
	runs := func(r secrets.Reference) bool { return r.Kind == secrets.Exec }
	if !slices.ContainsFunc(all, runs) {
		return nil, nil
	}
	change, err := judge(con, cfg, nil)
	if change == nil || err != nil {
		return nil, err
	}
	var confirmed []string
	if change.Old != nil {
		confirmed = change.Old.Commands()
	}
	held := make(map[secrets.Reference]secrets.Secret)
	for _, r := range all {
		if runs(r) && !slices.Contains(confirmed, r.Name) {
			held[r] = secrets.Secret{Err: &secrets.Error{Message: "its command is not run before an approver confirms the configuration", Hint: change.WayOn()}}
		}
	}
	return held, nil
}

// filled is cfg with the secrets of files and of the keyring filled in, as far as they are
// to be had. Nothing depends on them: two servers are compared.
func (con *console) filled(cfg *config.Config) *config.Config {
	all := slices.DeleteFunc(cfg.References("/servers", "/mcpServers"), func(r secrets.Reference) bool { return r.Kind == secrets.Exec })
	if len(all) == 0 {
		return cfg
	}
	with, err := cfg.WithSecrets(con.resolver(cfg).Resolve(context.Background(), all))
	if err != nil {
		return cfg
	}
	return with
}

func (con *console) resolver(cfg *config.Config) *secrets.Resolver {
	home, _ := config.Home(con.Env)
	return &secrets.Resolver{Folder: filepath.Dir(cfg.File), Home: home, Keyring: secrets.System(secrets.Service), Timeout: time.Duration(cfg.Secrets.Timeout), Memory: con.asked}
}

// secretsOf gives the commands of package secretscmd access to the keyring.
func secretsOf(con *console) *secretscmd.Bridge {
	return &secretscmd.Bridge{
		Console: &con.Console, Load: con.load, Store: con.keyring,
		Refuse: func(err error, hint string) error { return &configError{err, hint} },
	}
}

// keyring is the user's keyring.
func (con *console) keyring() (secrets.Store, error) {
	places, err := config.Paths(con.Env)
	if err != nil {
		return secrets.Store{}, &configError{err, "set XDG_STATE_HOME, or HOME"}
	}
	return secrets.Store{Keys: secrets.System(secrets.Service), Dir: filepath.Join(places.StateDir, "secrets")}, nil
}

// ofServer are the JSON pointers of a server.
func ofServer(name string) []string { return []string{"/servers/" + name, "/mcpServers/" + name} }

// approverTokens is where approvers have their tokens.
const approverTokens = "/approvals/approvers"

// hidden returns what the recorder is to hide of a configuration: what servers are given,
// and all secrets that were asked for.
func hidden(cfg *config.Config, env config.Env) []recorder.Server {
	return append(given(specs(cfg, env)), recorder.Server{Secrets: cfg.SecretTexts()})
}

// ready fills the secrets into the configuration that a bridge starts with.
func (b beginning) ready(ctx context.Context, con *console) (beginning, error) {
	cfg, err := con.withSecretsInForce(ctx, b.cfg)
	if err != nil {
		return b, err
	}
	if b.file == b.cfg {
		b.file = cfg
	}
	b.cfg = cfg
	return b, nil
}
