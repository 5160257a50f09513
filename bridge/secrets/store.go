package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Store is a keyring whose names can be listed. No keyring lists them in the same way,
// so each name is noted in a file of its own.
type Store struct {
	Keys Keys
	// Dir is the folder of the notes, made when it is needed.
	Dir string
}

// note is the file of a name. Names may differ only in case, files may not.
func (s Store) note(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8]))
}

// Set keeps a secret under a name, in the place of the one that was there.
func (s Store) Set(name, text string) error {
	if !NameForm.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a secret", name)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("noting the name of a secret: %w", err)
	}
	if err := os.WriteFile(s.note(name), []byte(name), 0o600); err != nil { // first: a name too many does no harm
		return fmt.Errorf("noting the name of a secret: %w", err)
	}
	return s.Keys.Set(name, text)
}

// Remove removes a secret and its name. The error is [ErrNoKey] if there is none.
func (s Store) Remove(name string) error {
	err := s.Keys.Delete(name)
	if err == nil || errors.Is(err, ErrNoKey) {
		if gone := os.Remove(s.note(name)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return fmt.Errorf("forgetting the name of a secret: %w", gone)
		}
	}
	return err
}

// Names returns the names that were set here, sorted. The keyring may have lost some.
func (s Store) Names() ([]string, error) {
	notes, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the names of secrets: %w", err)
	}
	var all []string
	for _, n := range notes {
		name, err := os.ReadFile(filepath.Join(s.Dir, n.Name()))
		if err == nil && NameForm.Match(name) && s.note(string(name)) == filepath.Join(s.Dir, n.Name()) {
			all = append(all, string(name))
		}
	}
	slices.Sort(all)
	return all, nil
}

// Has reports whether the keyring has a secret under a name.
func (s Store) Has(name string) (bool, error) {
	_, err := s.Keys.Get(name)
	if errors.Is(err, ErrNoKey) {
		return false, nil
	}
	return err == nil, err
}

// Fits says why a text can't be a secret: what Resolve would refuse.
func Fits(name, text string) error {
	if _, err := checked(Reference{Keyring, name}, text); err != nil {
		return err
	}
	return nil
}
