package sqlstore

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const keySize = 32

// A store and its key are created together. The key is first written as FILE.new,
// then the schema is committed with the key's name, then the key is renamed:
// wherever that is interrupted, a store without its key or a key without its store
// is always a sign of tampering.
func newKeyFile(file string) string { return file + ".new" }

// makeKey writes a new key to FILE.new.
func makeKey(file string) ([]byte, error) {
	key := make([]byte, keySize)
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
		if freshErr == nil && keyName(fresh) == name {
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
	if keyName(key) != name {
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
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	if len(key) != keySize {
		return nil, damaged("the key %s has not %d bytes", file, keySize)
	}
	return key, nil
}

// keyName is what the store keeps of its key: it tells keys apart and reveals
// nothing about them.
func keyName(key []byte) string { return hex.EncodeToString(derive(key, "name")[:8]) }

// derive returns a key for another purpose.
func derive(key []byte, purpose string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("codemode-bridge key 1\n" + purpose))
	return m.Sum(nil)
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
	return derive(f.key, purpose), nil
}
