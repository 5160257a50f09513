package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// logins are the logins of the user, which all configurations share.
func logins(con *console) *login.Keeper {
	o := login.Options{Keyring: secrets.System(secrets.Logins)}
	if kept, _ := con.Env("CODEMODE_LOGINS"); kept == "file" {
		o.Keyring = nil
	}
	if places, err := config.Paths(con.Env); err == nil {
		o.Dir = filepath.Join(places.StateDir, "logins")
	}
	return login.Open(o)
}

// serverToLogIn converts a server of the configuration for package login; ok is false
// if it takes no login.
func serverToLogIn(s *config.Server) (_ login.Server, ok bool) {
	if s.Unready != nil || s.Auth.Type != config.AuthPerson && s.Auth.Type != config.AuthCredentials {
		return login.Server{}, false
	}
	return login.Server{
		Name: s.Name, URL: s.URL.Reveal(), Headers: config.RevealMap(s.Headers),
		ClientID: s.Auth.ClientID.Reveal(), ClientSecret: s.Auth.ClientSecret.Reveal(),
		Credentials: s.Auth.Type == config.AuthCredentials, Scopes: s.Auth.Scopes, Issuer: s.Auth.Issuer.Reveal(),
	}, true
}

// specsWithLogins is specs with the user's logins.
func specsWithLogins(cfg *config.Config, logins *login.Keeper, env config.Env) []upstream.Spec {
	all := specs(cfg, env)
	for i := range all {
		if s, ok := serverToLogIn(cfg.Servers[all[i].Name]); ok {
			all[i].Auth = logins.Client(s)
		}
	}
	return all
}

// loginClient returns the login client for a server that the command line names.
func loginClient(ctx context.Context, con *console, keeper *login.Keeper, name string) (*login.Client, *config.Server, error) {
	cfg, err := con.load()
	if err == nil {
		cfg, err = con.withSecrets(ctx, cfg, ofServer(name)...)
	}
	if err != nil {
		return nil, nil, err
	}
	s := cfg.Servers[name]
	if s == nil {
		return nil, nil, fmt.Errorf("there is no server %q; the servers are %s", name, strings.Join(cfg.ServerNames(), ", "))
	}
	at, ok := serverToLogIn(s)
	switch {
	case s.Unready != nil:
		return nil, nil, fmt.Errorf("reaching %s: %s", name, s.WhyUnready())
	case s.Type != config.KindHTTP && s.Type != config.KindSSE:
		return nil, nil, fmt.Errorf("%s is a server of type %s; only http and sse servers are logged in to (if its program gets a login by itself, %s waits for it)",
			name, s.Type, typed(con, "servers test "+name))
	case !ok:
		return nil, nil, fmt.Errorf("nobody logs in to %s: its auth is none, or its headers have an Authorization", name)
	}
	return keeper.Client(at), s, nil
}

func serversLoginCommand(con *console) *cobra.Command {
	var noBrowser bool
	c := &cobra.Command{
		Use: "login name", Short: "Log in to a server in the browser", Args: cli.OneArg,
		Long: "Opens the server's login in the browser and waits until it comes back to a port of this machine.\n" +
			"A bridge that is running notices by itself. On a machine without a browser, use --no-browser:\n" +
			"open the link elsewhere, and paste the address that the browser ends at.",
		RunE: func(c *cobra.Command, args []string) error {
			keeper := logins(con)
			defer keeper.Close()
			client, s, err := loginClient(c.Context(), con, keeper, args[0])
			if err != nil {
				return err
			}
			info, err := client.LogIn(c.Context(), login.Terminal{In: con.In, Out: con.Err, NoBrowser: noBrowser, Port: s.Auth.RedirectPort})
			if err != nil {
				return fmt.Errorf("logging in to %s: %w", s.Name, err)
			}
			if con.JSON {
				return con.PrintJSON(loginShown(s.Name, info))
			}
			_, err = fmt.Fprintf(con.Out, "logged in to %s (%s)\n", s.Name, info.Describe())
			return err
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "print the link only, and take the address that the browser ended at from standard input")
	con.JSONFlag(c)
	return c
}

func loginShown(name string, i login.Info) map[string]any {
	shown := map[string]any{"server": name, "issuer": i.Issuer, "scopes": append([]string{}, i.Scopes...), "renews": i.Renews, "keyring": i.Keyring}
	if !i.Expires.IsZero() {
		shown["expires"] = i.Expires
	}
	return shown
}

func serversLogoutCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "logout name", Short: "Revoke the login at a server, and delete it", Args: cli.OneArg,
		RunE: func(c *cobra.Command, args []string) error {
			keeper := logins(con)
			defer keeper.Close()
			client, s, err := loginClient(c.Context(), con, keeper, args[0])
			if err != nil {
				return err
			}
			revoked, notRevoked, err := client.Logout(c.Context())
			if err != nil {
				return fmt.Errorf("logging out of %s: %w", s.Name, err)
			}
			if notRevoked != nil {
				fmt.Fprintf(con.Err, "the login is deleted here, but may still be good at the server: %v\n", notRevoked)
			}
			if con.JSON {
				return con.PrintJSON(map[string]any{"server": s.Name, "revoked": revoked})
			}
			text := "logged out of %s\n"
			if !revoked && notRevoked == nil {
				text = "logged out of %s (its authorization server has no way to revoke a login)\n"
			}
			_, err = fmt.Fprintf(con.Out, text, s.Name)
			return err
		},
	}
	con.JSONFlag(c)
	return c
}
