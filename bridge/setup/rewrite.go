package setup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/config"
)

// ErrChanged is the error of Rewrite if somebody else changes the file meanwhile.
var ErrChanged = errors.New("the configuration was changed meanwhile")

// Rewrite changes the configuration file at path in one step. It writes nothing
// unless parse finds the edited text free of mistakes, and before, which is given the
// configuration, returns no error. If path is a link, what it leads to is changed.
func Rewrite(path string, edit func(text []byte) ([]byte, error), parse func(text []byte) (*config.Config, error), before func(*config.Config) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // so that the link stays a link
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	next, err := edit(text)
	if err != nil {
		return err
	}
	cfg, err := parse(next)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("changing the configuration: %w", err)
	}
	err = atomicfile.Replace(path, next, atomicfile.Options{Mode: info.Mode().Perm(), Before: func() error {
		if err := before(cfg); err != nil {
			return err
		}
		now, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(now, text) {
			err = ErrChanged
		}
		return err
	}})
	if err != nil {
		return fmt.Errorf("changing the configuration: %w", err)
	}
	return nil
}
