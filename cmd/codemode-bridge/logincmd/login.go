package logincmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
	Open func() *Logins
	// Ready fills in the secrets that a server names, and those of the store.
	Ready func(ctx context.Context, cfg *config.Config, name string) (*config.Config, error)
	Typed func(command string) string // a command as the person would type it
	// Record calls do with what records to the audit log.
	Record func(ctx context.Context, cfg *config.Config, do func(pins.Recorder) error) error
}

// An account is the login that a command is about: the user's, or a person's.
type account struct {
	cfg    *config.Config
	server *config.Server
	client *login.Client // the user's
	at     *login.AccountsAt
	person string
}

func (a *account) logIn(ctx context.Context, con *Bridge, at login.Terminal) (login.Info, error) {
	if a.pasted() {
		token, err := con.ReadSecret(fmt.Sprintf("the token for %s (not shown): ", a.server.Name))
		if err == nil {
			err = a.at.Paste(ctx, a.person, token)
		}
		return login.Info{}, err
	}
	if a.at != nil {
		return a.at.LogIn(ctx, a.person, at)
	}
	return a.client.LogIn(ctx, at)
}

// pasted reports whether a token is pasted, instead of a login in the browser.
func (a *account) pasted() bool { return a.server.Type == config.KindStdio }

func (a *account) logOut(ctx context.Context) (revoked bool, notRevoked, err error) {
	if a.at != nil {
		return a.at.Disconnect(ctx, a.person)
	}
	return a.client.Logout(ctx)
}

// record records that a person's account was connected or disconnected.
func (con *Bridge) record(ctx context.Context, a *account, event ledger.Event) error {
	if a.at == nil {
		return nil
	}
	err := con.Record(ctx, a.cfg, func(rec pins.Recorder) error {
		return rec.Record(ctx, ledger.Record{Event: event, Time: time.Now(), Server: a.server.Name, Principal: a.person, Channel: "terminal", Outcome: ledger.Done, Durable: true})
	})
	if err != nil {
		return fmt.Errorf("recording it: %w", err)
	}
	return nil
}

// whose says whose login it is, where each person has one.
func (a *account) whose() string {
	switch {
	case a.at == nil:
		return ""
	case a.person == Local:
		return " as the local user"
	}
	return " as " + canon.Escape(a.person)
}

// loginClient returns the login of a server that the command line names, as it says.
func (con *Bridge) loginClient(ctx context.Context, keeper *Logins, name, as string) (*account, error) {
	cfg, err := con.Load()
	if err == nil {
		cfg, err = con.Ready(ctx, cfg, name)
	}
	if err != nil {
		return nil, err
	}
	s := cfg.Servers[name]
	if s == nil {
		return nil, fmt.Errorf("there is no server %q; the servers are %s", name, strings.Join(cfg.ServerNames(), ", "))
	}
	at, ok := ServerOf(s)
	switch {
	case s.Unready != nil:
		return nil, fmt.Errorf("reaching %s: %s", name, s.WhyUnready())
	case s.Type != config.KindHTTP && s.Type != config.KindSSE && !ok:
		return nil, fmt.Errorf("%s is a server of type %s; only http and sse servers are logged in to (if its program gets a login by itself, %s waits for it)",
			name, s.Type, con.Typed("servers test "+name))
	case !ok:
		return nil, fmt.Errorf("nobody logs in to %s: its auth is none, or its headers have an Authorization", name)
	}
	a := &account{cfg: cfg, server: s}
	switch {
	case s.Auth.Per == config.AuthPrincipal:
		a.at, a.person = keeper.At(cfg, at), PersonOf(cfg, as)
	case as != "":
		return nil, fmt.Errorf("all use one login at %s: --as is for a server with \"auth\": {\"per\": \"principal\"}", name)
	default:
		keeper.Move(func(server, file string) {
			fmt.Fprintf(con.Err, "the login at %s was moved from %s to the store\n", server, file)
		})
		a.client = keeper.Client(cfg, at)
	}
	return a, nil
}

// Login is the command that logs in to a server.
func (con *Bridge) Login() *cobra.Command {
	var noBrowser bool
	var as string
	c := &cobra.Command{
		Use: "login name", Short: "Log in to a server in the browser", Args: cli.OneArg,
		Long: "Opens the server's login in the browser and waits until it comes back to a port of this machine.\n" +
			"A bridge that is running notices by itself. On a machine without a browser, use --no-browser:\n" +
			"open the link elsewhere, and paste the address that the browser ends at. Where each person has a token for a\n" +
			"program (auth.env), it asks for the token at the terminal, or reads it from standard input.",
		Example: "  codemode-bridge servers login linear\n  gh auth token | codemode-bridge servers login github --as ann",
		RunE: func(c *cobra.Command, args []string) error {
			keeper := con.Open()
			defer keeper.Close()
			a, err := con.loginClient(c.Context(), keeper, args[0], as)
			if err != nil {
				return err
			}
			info, err := a.logIn(c.Context(), con, login.Terminal{In: con.In, Out: con.Err, NoBrowser: noBrowser, Port: a.server.Auth.RedirectPort})
			if err != nil {
				return fmt.Errorf("logging in to %s: %w", a.server.Name, err)
			}
			if err := con.record(c.Context(), a, ledger.AccountConnected); err != nil {
				return err
			}
			if con.JSON {
				return con.PrintJSON(loginShown(a, info))
			}
			if a.pasted() {
				_, err = fmt.Fprintf(con.Out, "the token for %s is kept, and used%s\n", a.server.Name, a.whose())
				return err
			}
			_, err = fmt.Fprintf(con.Out, "logged in to %s%s (%s)\n", a.server.Name, a.whose(), info.Describe())
			return err
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "print the link only, and take the address that the browser ended at from standard input")
	con.asFlag(c, &as)
	con.JSONFlag(c)
	return c
}

func loginShown(a *account, i login.Info) map[string]any {
	shown := map[string]any{"server": a.server.Name, "issuer": i.Issuer, "scopes": append([]string{}, i.Scopes...), "renews": i.Renews, "keyring": i.Keyring, "store": i.Shared}
	if a.at != nil {
		shown["person"] = a.person
	}
	if !i.Expires.IsZero() {
		shown["expires"] = i.Expires
	}
	return shown
}

// Logout is the command that logs out of a server.
func (con *Bridge) Logout() *cobra.Command {
	var as string
	c := &cobra.Command{
		Use: "logout name", Short: "Revoke the login at a server, and delete it", Args: cli.OneArg,
		RunE: func(c *cobra.Command, args []string) error {
			keeper := con.Open()
			defer keeper.Close()
			a, err := con.loginClient(c.Context(), keeper, args[0], as)
			if err != nil {
				return err
			}
			revoked, notRevoked, err := a.logOut(c.Context())
			if err != nil {
				return fmt.Errorf("logging out of %s: %w", a.server.Name, err)
			}
			if err := con.record(c.Context(), a, ledger.AccountDisconnected); err != nil {
				return err
			}
			if notRevoked != nil {
				fmt.Fprintf(con.Err, "the login is deleted here, but may still be good at the server: %v\n", notRevoked)
			}
			if con.JSON {
				return con.PrintJSON(map[string]any{"server": a.server.Name, "revoked": revoked})
			}
			text := "logged out of %s\n"
			if a.pasted() {
				text = "logged out of %s: the token is deleted here, and good until it is deleted where it was made\n"
			} else if !revoked && notRevoked == nil {
				text = "logged out of %s (its authorization server has no way to revoke a login)\n"
			}
			_, err = fmt.Fprintf(con.Out, text, a.server.Name)
			return err
		},
	}
	con.asFlag(c, &as)
	con.JSONFlag(c)
	return c
}

// asFlag adds the flag that says whose account a command is about.
func (con *Bridge) asFlag(c *cobra.Command, as *string) {
	c.Flags().StringVar(as, "as", "", "whose account, where each person has their own: the `principal`, as the audit log has it (default: the local user)")
}
