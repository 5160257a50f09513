// Package secretscmd has the commands about the secrets that the system's keyring keeps
// for the configuration: "secrets".
package secretscmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
	// Store is the user's keyring.
	Store func() (secrets.Store, error)
	// Refuse makes an error with a hint.
	Refuse func(err error, hint string) error
}

// patience is how long the keyring may take here: it may be asking the person for its
// password.
const patience = 2 * time.Minute

// Command is the command group "secrets".
func (b *Bridge) Command() *cobra.Command {
	group := &cobra.Command{
		Use: "secrets", Short: "The secrets that the system's keyring keeps for the configuration",
		Long: "The secrets that the system's keyring keeps for the configuration, which names one as \"${keyring:NAME}\" wherever it\n" +
			"can name a variable: in env, headers, args, a url, a token. The keyring is the Secret Service on Linux, the Keychain\n" +
			"on macOS, the Credential Manager on Windows. Without one: \"${file:PATH}\", a file that only you can read, or\n" +
			"\"${exec:COMMAND ARGS}\", what a program prints, such as \"${exec:op read op://vault/item/field}\".",
	}
	group.AddCommand(b.set(), b.list(), b.remove())
	return group
}

// store is the keyring, which is given up after a while.
func (b *Bridge) store(ctx context.Context) (secrets.Store, error) {
	s, err := b.Store()
	if err == nil {
		s.Keys = secrets.Patient(ctx, s.Keys, patience)
	}
	return s, err
}

// noKeyring is the error for a keyring that cannot be used.
func (b *Bridge) noKeyring(err error) error {
	wrong := secrets.NoKeyring(err)
	return b.Refuse(wrong, wrong.Hint)
}

// named checks the name of a secret, and that nothing stands behind it.
func named(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return &cli.UsageError{Err: errors.New("name the secret, such as GITHUB_TOKEN")}
	case len(args) > 1, strings.Contains(args[0], "="):
		return &cli.UsageError{Err: errors.New("a value is never an argument, because others see those: secrets set NAME asks for it, or reads standard input")}
	case !secrets.NameForm.MatchString(args[0]):
		return &cli.UsageError{Err: fmt.Errorf(`%q cannot be the name of a secret: letters, digits, ".", "_" and "-", 64 at most`, args[0])}
	}
	return nil
}

func (b *Bridge) set() *cobra.Command {
	return &cobra.Command{
		Use: "set name", Short: "Put a secret into the keyring: asks for it, or reads standard input", Args: named,
		Long: "Puts a secret into the keyring, in the place of the one that is there. The value is asked for at the terminal and\n" +
			"not shown, or is all of standard input without the line break at its end. A bridge that runs reads it when it\n" +
			"starts next, or takes over an edit of the configuration.",
		Example: "  codemode-bridge secrets set GITHUB_TOKEN\n  gh auth token | codemode-bridge secrets set GITHUB_TOKEN",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := b.store(c.Context())
			if err != nil {
				return err
			}
			if _, err := s.Has(args[0]); err != nil { // before anybody types
				return b.noKeyring(err)
			}
			text, err := b.ReadSecret(fmt.Sprintf("the value of %s (not shown): ", args[0]))
			if err != nil {
				return err
			}
			if err := secrets.Fits(args[0], text); err != nil {
				return &cli.UsageError{Err: fmt.Errorf("%w: nothing was changed", err)}
			}
			if err := s.Set(args[0], text); err != nil {
				return b.noKeyring(err)
			}
			_, err = fmt.Fprintf(b.Err, "%s is in the keyring; a configuration names it as \"${keyring:%s}\"\n", args[0], args[0])
			return err
		},
	}
}

// A row is a secret as --json prints it.
type row struct {
	Name   string   `json:"name"`
	There  bool     `json:"there"`
	UsedBy []string `json:"used_by"`
}

func (b *Bridge) list() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the names of the secrets, and which servers use them", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := b.store(c.Context())
			if err != nil {
				return err
			}
			names, err := s.Names()
			if err != nil {
				return err
			}
			used := map[string][]string{}
			if cfg, err := b.Load(); err == nil { // without a configuration, nobody uses one
				used = usedBy(cfg)
			}
			for name := range used {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			rows := []row{}
			for _, name := range names {
				there, err := s.Has(name)
				if err != nil {
					return b.noKeyring(err)
				}
				rows = append(rows, row{name, there, append([]string{}, used[name]...)})
			}
			if b.JSON {
				return b.PrintJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(b.Err, "there are no secrets; codemode-bridge secrets set NAME keeps one")
				return nil
			}
			table := [][]string{{"name", "state", "used by"}}
			for _, r := range rows {
				state := "set"
				if !r.There {
					state = "missing"
				}
				table = append(table, []string{r.Name, state, strings.Join(r.UsedBy, ", ")})
			}
			return b.Table(table)
		},
	}
	b.JSONFlag(c)
	return c
}

// usedBy returns who uses each secret of the keyring: servers by their names, and
// sections of the configuration.
func usedBy(cfg *config.Config) map[string][]string {
	used := map[string][]string{}
	add := func(who string, below ...string) {
		for _, r := range cfg.References(below...) {
			if r.Kind == secrets.Keyring {
				used[r.Name] = append(used[r.Name], who)
			}
		}
	}
	for _, name := range cfg.ServerNames() {
		add(name, "/servers/"+name, "/mcpServers/"+name)
	}
	add("http", "/http")
	add("approvals", "/approvals")
	return used
}

func (b *Bridge) remove() *cobra.Command {
	return &cobra.Command{
		Use: "remove name", Short: "Remove a secret from the keyring", Args: named,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := b.store(c.Context())
			if err != nil {
				return err
			}
			switch err := s.Remove(args[0]); {
			case errors.Is(err, secrets.ErrNoKey):
				return b.Refuse(fmt.Errorf("the keyring has no secret %q", args[0]), "codemode-bridge secrets list shows those that it has")
			case err != nil:
				return b.noKeyring(err)
			}
			fmt.Fprintf(b.Err, "%s is removed from the keyring\n", args[0])
			if cfg, err := b.Load(); err == nil {
				if who := usedBy(cfg)[args[0]]; len(who) > 0 {
					b.Told("the configuration still names it: %s", strings.Join(who, ", "))
				}
			}
			return nil
		},
	}
}
