package policycmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
}

// Command is the command group "policy".
func (b *Bridge) Command() *cobra.Command {
	group := &cobra.Command{
		Use: "policy", Short: "Documents of policy that configurations include",
		Long: "Documents of policy that configurations include, from files and https addresses. keygen and sign are for whoever\n" +
			"writes one for others: serve the document and what sign writes beside it, NAME and NAME.sig, and have configurations\n" +
			"include its address with the public key.",
	}
	group.AddCommand(b.keygen(), b.sign(), b.list())
	return group
}

func (b *Bridge) keygen() *cobra.Command {
	return &cobra.Command{
		Use: "keygen FILE", Short: "Make a key, the private part in FILE, and print the public one", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			private, public, err := policydoc.GenerateKey(rand.Reader)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return &cli.UsageError{Err: fmt.Errorf("%s is there already: name another file", args[0])}
			}
			if err != nil {
				return fmt.Errorf("writing the key: %w", err)
			}
			_, err = fmt.Fprintln(f, private)
			if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
				return fmt.Errorf("writing the key: %w", err)
			}
			_, err = fmt.Fprintln(b.Out, public)
			return err
		},
	}
}

func (b *Bridge) sign() *cobra.Command {
	var keyFile, notBefore, expires string
	var serial int64
	c := &cobra.Command{
		Use: "sign FILE", Short: "Sign a document: writes FILE.sig", Args: cli.ExactArgs(1),
		Long: "Signs a document and writes the signature to FILE.sig. The serial must be higher than that of every document that\n" +
			"was signed for the same address before: readers refuse an older one. Who signs has approved the document: it\n" +
			"applies at those who include it, even where it loosens something. A document with mistakes is not signed.",
		RunE: func(_ *cobra.Command, args []string) error {
			if keyFile == "" || serial == 0 {
				return &cli.UsageError{Err: errors.New("--key and --serial are needed: the file that policy keygen wrote, and a number that is higher than the last version's (1 for the first)")}
			}
			when, err := validity(notBefore, expires)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			text, err := readFile(args[0])
			if err != nil {
				return fmt.Errorf("reading the document: %w", err)
			}
			if inner, err := config.Includes(args[0], text); err != nil {
				return err
			} else if len(inner) > 0 {
				return inner[0].Problem("a document from an address may include nothing", "include both in the file")
			}
			name, err := filepath.Abs(args[0])
			if err != nil {
				return fmt.Errorf("reading the document: %w", err)
			}
			// Whoever includes a document that is wrong cannot start. A variable is set there, and need not be here.
			if _, err := (config.Texts{Name: name, File: string(text)}).Recall(os.LookupEnv); err != nil {
				return err
			}
			secret, err := atomicfile.Read(keyFile, policydoc.MaxEnvelope)
			if err != nil {
				return fmt.Errorf("reading the key: %w", err)
			}
			key, err := policydoc.ParsePrivate(string(secret))
			if err != nil {
				return fmt.Errorf("%s: %w", keyFile, err)
			}
			e, err := policydoc.Sign(text, key, serial, when)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if old, err := atomicfile.Read(args[0]+".sig", policydoc.MaxEnvelope); err == nil {
				if was, err := policydoc.ParseEnvelope(old); err == nil && was.Key == e.Key && (was.Serial > serial || was.Serial == serial && was.SHA256 != e.SHA256) {
					return &cli.UsageError{Err: fmt.Errorf("%s.sig has the serial %d already, and readers would refuse %d: sign with --serial %d", args[0], was.Serial, serial, was.Serial+1)}
				}
			}
			written, err := json.MarshalIndent(e, "", "  ")
			if err == nil {
				err = atomicfile.Replace(args[0]+".sig", append(written, '\n'), atomicfile.Options{Mode: 0o644})
			}
			if err != nil {
				return fmt.Errorf("writing the signature: %w", err)
			}
			_, err = fmt.Fprintf(b.Out, "%s.sig: serial %d, signed by %s\n", args[0], serial, e.Key)
			return err
		},
	}
	c.Flags().StringVar(&keyFile, "key", "", "the `file` with the private key, of policy keygen")
	c.Flags().Int64Var(&serial, "serial", 0, "the `number` of this version, higher than all before")
	c.Flags().StringVar(&notBefore, "not-before", "", "the `time` before which it is not used, as 2026-12-01T00:00:00Z")
	c.Flags().StringVar(&expires, "expires", "", "the `time` from which it is not used any more: nothing starts with it then")
	return c
}

// validity reads two times, each of which may be empty.
func validity(notBefore, expires string) (v policydoc.Validity, err error) {
	for _, at := range []struct {
		flag, text string
		to         **time.Time
	}{{"--not-before", notBefore, &v.NotBefore}, {"--expires", expires, &v.Expires}} {
		if at.text == "" {
			continue
		}
		when, err := time.Parse(time.RFC3339, at.text)
		if err != nil {
			return v, fmt.Errorf("%s is a time such as 2026-12-01T00:00:00Z", at.flag)
		}
		*at.to = &when
	}
	return v, nil
}

// A Standing says how an included document is, for list and doctor.
type Standing struct {
	Name    string     `json:"name"`
	Key     string     `json:"key,omitempty"`
	Serial  int64      `json:"serial,omitempty"`
	Checked *time.Time `json:"checked,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Problem is why the newest that is at the address is not used.
	Problem string `json:"problem,omitempty"`
}

// Standings looks at what a configuration includes; documents are fetched for it.
func Standings(ctx context.Context, cfg *config.Config, env config.Env) (all []Standing) {
	l := Open(env, profiles.Options{})
	for _, doc := range cfg.Included().Documents {
		s := Standing{Name: doc.Name, Key: doc.Key, Serial: doc.Serial}
		for _, inc := range cfg.Include {
			if inc.URL == "" || inc.Ref() != doc.Ref {
				continue
			}
			got, err := l.Store.Get(ctx, inc, true)
			if err == nil {
				err = got.Problem
			}
			if err != nil {
				s.Problem = canon.Escape(err.Error())
			}
			s.Serial, s.Expires = max(s.Serial, got.Envelope.Serial), got.Envelope.Expires
			if !got.Checked.IsZero() {
				s.Checked = &got.Checked
			}
		}
		all = append(all, s)
	}
	return all
}

// soon is how long before its end doctor speaks of a document.
const soon = 14 * 24 * time.Hour

// Troubles says which included documents are not as new as they could be, or will not be usable for long.
func Troubles(cfg *config.Config, env config.Env) (all []string) {
	for _, s := range Standings(context.Background(), cfg, env) {
		if s.Problem != "" || s.Expires != nil && time.Until(*s.Expires) < soon {
			all = append(all, "included document "+s.String())
		}
	}
	return all
}

func (s Standing) String() string {
	text := canon.Escape(s.Name)
	if s.Key != "" {
		text += fmt.Sprintf(", serial %d", s.Serial)
	}
	if s.Expires != nil {
		text += ", until " + s.Expires.UTC().Format(time.RFC3339)
	}
	if s.Checked != nil {
		text += ", seen at its address " + s.Checked.Local().Format("2006-01-02 15:04:05")
	}
	if s.Problem != "" {
		text += "; the last good copy holds: " + s.Problem
	}
	return text
}

func (b *Bridge) list() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "Show what the configuration includes, the first one below the others", Args: cli.NoArgs,
		Long: "Shows what the configuration includes, and fetches what is at an address to say how it is: its serial, until when it\n" +
			"may be used, and when its address last said that it is current.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := b.Load()
			if err != nil {
				return err
			}
			all := Standings(c.Context(), cfg, b.Env)
			if b.JSON {
				return b.PrintJSON(all)
			}
			for _, s := range all {
				fmt.Fprintln(b.Out, s)
			}
			return nil
		},
	}
	b.JSONFlag(c)
	return c
}
