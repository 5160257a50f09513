package setupcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// keyringPatience is how long the keyring may take: it may be asking for a password.
const keyringPatience = 2 * time.Minute

// inKeyring keeps secrets in the system's keyring.
type inKeyring struct{ store secrets.Store }

func (k inKeyring) Has(name string) (string, bool, error) {
	value, err := k.store.Keys.Get(name)
	if errors.Is(err, secrets.ErrNoKey) {
		return "", false, nil
	}
	return value, err == nil, err
}
func (k inKeyring) Set(name, value string) error { return k.store.Set(name, value) }
func (inKeyring) Reference(name string) secrets.Reference {
	return secrets.Reference{Kind: secrets.Keyring, Name: name}
}

// inFiles keeps secrets in files beside the configuration, each for its owner alone.
type inFiles struct{ folder string }

// filesFolder is the folder of those files, seen from the configuration's.
const filesFolder = "secrets"

func (k inFiles) Has(name string) (string, bool, error) {
	text, err := os.ReadFile(filepath.Join(k.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(text), err == nil, err
}

func (k inFiles) Set(name, value string) error {
	if err := os.MkdirAll(k.folder, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(k.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Sync(), f.Close())
}

func (inFiles) Reference(name string) secrets.Reference {
	return secrets.Reference{Kind: secrets.File, Name: filesFolder + "/" + name}
}

// keepSecrets offers to move the secrets that clients have in their files out of the new
// configuration: into the keyring or, without one, into files. Nobody but a person at the
// terminal can say so, each for itself.
func keepSecrets(ctx context.Context, con *Bridge, servers []*setup.Server, path string, quiet bool) error {
	all := setup.Literals(servers, con.ArgSecrets)
	if len(all) == 0 || quiet || !con.HasPerson() {
		return nil // writeFirst tells of them
	}
	store, err := con.Keyring()
	if err != nil {
		return err
	}
	store.Keys = secrets.Patient(ctx, store.Keys, keyringPatience)
	keeper, into := setup.Keeper(inKeyring{store}), "the keyring"
	if _, err := store.Has("CODEMODE_BRIDGE"); err != nil { // any name: does it answer?
		folder := filepath.Join(filepath.Dir(path), filesFolder)
		con.Told("%v", secrets.NoKeyring(err))
		keeper, into = inFiles{folder}, "a file that only you can read, in "+con.HomeShort(folder)
	}
	for _, one := range all {
		yes, err := con.Agree(fmt.Sprintf("move %s of %s (%s, looks like a secret) into %s?", one.Where, one.Server, cli.Count(one.Length(), "character"), into))
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		r, err := one.Keep(keeper)
		if err != nil {
			return fmt.Errorf("moving %s of %s: %w", one.Where, one.Server, err)
		}
		con.Told("the configuration names it as %s; the file of your client still has it", r)
	}
	return nil
}

// tellSecrets says which values that look like secrets stand in a new configuration.
func tellSecrets(con *Bridge, servers []*setup.Server, asked bool) {
	left := setup.Literals(servers, con.ArgSecrets)
	if len(left) == 0 {
		return
	}
	words := "1 value that looks like a secret stands in it as your clients had it"
	if len(left) > 1 {
		words = fmt.Sprintf("%d values that look like secrets stand in it as your clients had them", len(left))
	}
	if !asked {
		words += ", and nobody was asked to move it"
		if len(left) > 1 {
			words = strings.TrimSuffix(words, "it") + "them"
		}
	}
	con.Told(`%s: %s, then write "${keyring:%s}" in its place; doctor lists what is left`, words, con.Typed("secrets set "+left[0].Name), left[0].Name)
}
