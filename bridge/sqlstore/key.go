package sqlstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"codemode-bridge/bridge/ledger"
)

// A store and its key are created together. The key is first written as FILE.new,
// then the schema is committed with the key's name, then the key is renamed:
// wherever that is interrupted, a store without its key or a key without its store
// is always a sign of tampering.
func newKeyFile(file string) string { return file + ".new" }

// makeKey writes a new key to FILE.new.
func makeKey(file string) ([]byte, error) {
	key := make([]byte, ledger.KeySize)
	rand.Read(key)
	f, err := os.OpenFile(newKeyFile(file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing the key: %w", err)
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return nil, fmt.Errorf("writing the key: %w", err)
	}
	return key, nil
}

// readKey reads the key that has the given name. If only FILE.new has it, it
// is renamed first, unless readOnly.
func readKey(file, name string, readOnly bool) ([]byte, error) {
	key, err := readKeyFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		fresh, freshErr := readKeyFile(newKeyFile(file))
		if freshErr == nil && ledger.KeyName(fresh) == name {
			if !readOnly {
				if err := os.Rename(newKeyFile(file), file); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("writing the key: %w", err)
				}
			}
			return fresh, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged("its key %s is gone", file)
	}
	if err != nil {
		return nil, err
	}
	if ledger.KeyName(key) != name {
		return nil, damaged("%s is not its key", file)
	}
	return key, nil
}

func readKeyFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, ledger.KeySize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	if len(key) != ledger.KeySize {
		return nil, damaged("the key %s has not %d bytes", file, ledger.KeySize)
	}
	return key, nil
}

// Key returns a secret of this store for another purpose, the same in every
// process and each time the store is opened.
func (db *DB) Key(purpose string) ([]byte, error) {
	f, err := db.reading()
	if err != nil {
		return nil, err
	}
	if f.key == nil {
		return nil, damaged("its key cannot be read")
	}
	return ledger.Derive(f.key, purpose), nil
}
