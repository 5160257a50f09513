package main

import (
	"errors"
	"fmt"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/approverscmd"
)

// approvers are the commands about who may answer.
func approvers(con *console) *approverscmd.Bridge {
	return &approverscmd.Bridge{Console: &con.Console, Load: con.load,
		Edit: func(edit func([]byte, *config.Config) ([]byte, error)) error { return editConfig(con, edit) }}
}

// editConfig changes the configuration file in one step. If the result would not be
// a valid configuration, the file stays as it is.
func editConfig(con *console, edit func(text []byte, cfg *config.Config) ([]byte, error)) error {
	path, err := con.file()
	if err != nil {
		return err
	}
	cfg, err := con.load()
	if err != nil {
		return err
	}
	edited := false
	err = rewrite(con, path, func(text []byte) ([]byte, error) {
		next, err := edit(text, cfg)
		edited = err == nil
		return next, err
	}, func(*config.Config) error { return nil })
	if problems := (config.Problems)(nil); edited && errors.As(err, &problems) {
		fmt.Fprintln(con.Err, "the file was not changed: with this edit it would have mistakes")
	}
	return err
}

// rewrite changes the configuration file at path in one step. It writes nothing if
// the result is not a valid configuration, or if before, which is called with it,
// returns an error.
func rewrite(con *console, path string, edit func(text []byte) ([]byte, error), before func(*config.Config) error) error {
	return setup.Rewrite(path, edit, func(text []byte) (*config.Config, error) { return con.parseFile(path, text) }, before)
}
