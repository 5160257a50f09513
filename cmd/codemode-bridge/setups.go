package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/setupcmd"
)

// setupOf gives the commands of package setupcmd access to the program.
func setupOf(con *console) *setupcmd.Bridge {
	return &setupcmd.Bridge{
		Console: &con.Console, File: con.file, Named: func() bool { return con.configPath != "" || con.environment != "" }, Shown: con.shown, Load: con.load, User: thisUser,
		Typed:    func(command string) string { return typed(con, command) },
		System:   func() clients.System { return clientSystem(con) },
		OwnFiles: func(path string) []string { return con.policy(path).OwnFiles },
		Copy:     func() (*setup.Copy, error) { return copyOfProgram(con) },
		Entry:    func(path string) ([]string, error) { return clientEntry(con, path) },
		Parse: func(path string, text []byte) (*config.Config, error) {
			return con.loader(path).Text(context.Background(), con.shown(path), text, "")
		},
		Filled: con.filled,
		Rewrite: func(path string, edit func(text []byte) ([]byte, error)) error {
			return rewrite(con, path, edit, func(*config.Config) error { return nil })
		},
		Edit: func(edit func(text []byte, cfg *config.Config) ([]byte, error)) error { return editConfig(con, edit) },
		Pin: func(ctx context.Context, path string, text []byte, taking []*setup.Server) error {
			return pinTools(ctx, con, path, text, taking)
		},
		List: func(ctx context.Context, path string, text []byte, taking []*setup.Server) error {
			_, _, err := listTools(ctx, con, path, text, setup.Pinnable(taking))
			return err
		},
		Try:     func(ctx context.Context, name string) (setupcmd.Tried, error) { return tryAdded(ctx, con, name) },
		Keyring: con.keyring, ArgSecrets: recorder.ArgSecrets,
		Refuse: func(err error, hint string) error { return &configError{err, hint} },
	}
}

// clientSystem says where to look for the files of clients.
func clientSystem(con *console) clients.System {
	folder, err := os.Getwd()
	if err != nil {
		folder = ""
	}
	return clients.System{OS: runtime.GOOS, Env: con.Env, Folder: folder}
}

// clientEntry is the command with which clients start this bridge.
func clientEntry(con *console, path string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if kept, err := copyOfProgram(con); err != nil {
		return nil, err
	} else if kept != nil {
		self = kept.Path()
	}
	command := []string{self, "run", "--config", path}
	if con.environment != "" {
		command = append(command, "--env", con.environment)
	}
	return command, nil
}

// copyOfProgram is the copy of this program that clients start in its place; nil if it
// stays where it is.
func copyOfProgram(con *console) (*setup.Copy, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	places, err := config.Paths(con.Env)
	if err != nil {
		return nil, &configError{err, ""}
	}
	return setup.Stays(self, version, places.DataDir)
}
