package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/upstream"

	"github.com/spf13/cobra"
)

// logins are the logins of the user, which all configurations share.
func logins(con *console) *login.Keeper {
	o := login.Options{Keyring: login.SystemKeyring()}
	if kept, _ := con.env("CODEMODE_LOGINS"); kept == "file" {
		o.Keyring = nil
	}
	if places, err := config.Paths(con.env); err == nil {
		o.Dir = filepath.Join(places.StateDir, "logins")
	}
	return login.Open(o)
}

// serverToLogIn is a server of the configuration as package login wants it; ok is
// false where nobody logs in to it.
func serverToLogIn(s *config.Server) (_ login.Server, ok bool) {
	if s.Auth.Type != config.AuthPerson && s.Auth.Type != config.AuthCredentials {
		return login.Server{}, false
	}
	return login.Server{
		Name: s.Name, URL: s.URL.Reveal(), Headers: config.RevealMap(s.Headers),
		ClientID: s.Auth.ClientID.Reveal(), ClientSecret: s.Auth.ClientSecret.Reveal(),
		Credentials: s.Auth.Type == config.AuthCredentials, Scopes: s.Auth.Scopes, Issuer: s.Auth.Issuer.Reveal(),
	}, true
}

// specsWithLogins are the servers of a configuration, with their logins.
func specsWithLogins(cfg *config.Config, logins *login.Keeper) []upstream.Spec {
	all := specs(cfg)
	for i := range all {
		if s, ok := serverToLogIn(cfg.Servers[all[i].Name]); ok {
			all[i].Auth = logins.Client(s)
		}
	}
	return all
}

// loginClient is the client for a server that the command line names.
func loginClient(con *console, keeper *login.Keeper, name string) (*login.Client, *config.Server, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, nil, err
	}
	s := cfg.Servers[name]
	if s == nil {
		return nil, nil, fmt.Errorf("there is no server %q; the servers are %s", name, strings.Join(cfg.ServerNames(), ", "))
	}
	at, ok := serverToLogIn(s)
	switch {
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
		Use: "login name", Short: "Log in to a server in the browser", Args: oneArg,
		Long: "Opens the server's login in the browser and waits until it comes back to a port of this machine.\n" +
			"A bridge that is running notices by itself. On a machine without a browser, use --no-browser:\n" +
			"open the link elsewhere, and paste the address that the browser ends at.",
		RunE: func(c *cobra.Command, args []string) error {
			keeper := logins(con)
			defer keeper.Close()
			client, s, err := loginClient(con, keeper, args[0])
			if err != nil {
				return err
			}
			info, err := logIn(c.Context(), con, client, s, noBrowser)
			if err != nil {
				return fmt.Errorf("logging in to %s: %w", s.Name, err)
			}
			if con.json {
				return con.printJSON(loginShown(s.Name, info))
			}
			_, err = fmt.Fprintf(con.out, "logged in to %s (%s)\n", s.Name, info.Describe())
			return err
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "print the link only, and take the address that the browser ended at from standard input")
	con.jsonFlag(c)
	return c
}

// logIn has a person log in, wherever the browser is.
func logIn(ctx context.Context, con *console, client *login.Client, s *config.Server, noBrowser bool) (login.Info, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, login.WaitTime, fmt.Errorf("nobody logged in within %v", login.WaitTime))
	defer cancel()
	back, err := login.Listen(s.Auth.RedirectPort != 0, firstNonZero(s.Auth.RedirectPort, client.Redirect()))
	if err != nil {
		return login.Info{}, err
	}
	attempt, err := client.Begin(ctx, back.URL())
	if err != nil {
		back.Close()
		return login.Info{}, err
	}
	fmt.Fprintf(con.err, "log in to %s at:\n\n  %s\n\n", s.Name, attempt.Link())
	if !noBrowser {
		if err := login.OpenBrowser(attempt.Link()); err != nil {
			fmt.Fprintf(con.err, "%v; open the link yourself\n", err)
		}
		return back.Wait(ctx, attempt)
	}
	fmt.Fprint(con.err, "then paste the address that the browser ends at, though it shows no page: ")
	waiting, stop := context.WithCancel(ctx)
	type outcome struct {
		info login.Info
		err  error
	}
	done := make(chan outcome, 2)
	go func() {
		info, err := back.Wait(waiting, attempt)
		done <- outcome{info, err}
	}()
	go func() {
		info, err := pasted(ctx, con, attempt)
		done <- outcome{info, err}
	}()
	o := <-done
	if errors.Is(o.err, login.ErrFinished) { // the other one is at it
		fmt.Fprintln(con.err, "\nthe browser has come back already; waiting for the login to finish")
	}
	if errors.Is(o.err, login.ErrFinished) || errors.Is(o.err, errNothingPasted) {
		o = <-done
	}
	stop()
	return o.info, o.err
}

var errNothingPasted = errors.New("nothing was pasted")

// pasted reads lines until one is the address that the browser ended at.
func pasted(ctx context.Context, con *console, attempt *login.Attempt) (login.Info, error) {
	lines := bufio.NewScanner(con.in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		info, err := attempt.Finish(ctx, lines.Text())
		if !errors.Is(err, login.ErrOther) {
			return info, err
		}
		fmt.Fprint(con.err, "that is not it; it begins with http://127.0.0.1 and has a code in it: ")
	}
	return login.Info{}, errNothingPasted
}

func firstNonZero(a, b int) int {
	if a != 0 {
		return a
	}
	return b
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
		Use: "logout name", Short: "Revoke the login at a server, and delete it", Args: oneArg,
		RunE: func(c *cobra.Command, args []string) error {
			keeper := logins(con)
			defer keeper.Close()
			client, s, err := loginClient(con, keeper, args[0])
			if err != nil {
				return err
			}
			revoked, notRevoked, err := client.Logout(c.Context())
			if err != nil {
				return fmt.Errorf("logging out of %s: %w", s.Name, err)
			}
			if notRevoked != nil {
				fmt.Fprintf(con.err, "the login is deleted here, but may still be good at the server: %v\n", notRevoked)
			}
			if con.json {
				return con.printJSON(map[string]any{"server": s.Name, "revoked": revoked})
			}
			text := "logged out of %s\n"
			if !revoked && notRevoked == nil {
				text = "logged out of %s (its authorization server has no way to revoke a login)\n"
			}
			_, err = fmt.Fprintf(con.out, text, s.Name)
			return err
		},
	}
	con.jsonFlag(c)
	return c
}
