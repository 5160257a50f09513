package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/bridge/lockfile"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/upstreams"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
)

// A configError is a problem of the setup as a whole, such as a configuration that
// is missing, with a hint what to do about it. Mistakes within the file are
// config.Problems.
type configError struct {
	err  error
	hint string
}

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }
func (e *configError) Hint() string  { return e.hint }

// file is the absolute path of the configuration file: as --config or
// $CODEMODE_CONFIG names it, else in its usual place.
func (con *console) file() (string, error) {
	path := con.configPath
	if path == "" {
		path, _ = con.Env("CODEMODE_CONFIG")
	}
	if path == "" {
		places, err := config.Paths(con.Env)
		if err != nil {
			return "", &configError{err: err, hint: "name a file with --config"}
		}
		path = places.ConfigFile
	}
	return filepath.Abs(path)
}

// load reads the configuration.
func (con *console) load() (*config.Config, error) {
	cfg, _, err := con.loadLooked()
	return cfg, err
}

// loadLooked reads the configuration and returns the names of the environment
// variables that were looked up in reading it. Those that say where the file is are
// not among them.
func (con *console) loadLooked() (cfg *config.Config, looked []string, err error) {
	path, err := con.file()
	if err != nil {
		return nil, nil, err
	}
	names := rememberLookups(con)
	cfg, err = con.loadFile(path)
	looked = names()
	var problems config.Problems
	var usage *cli.UsageError
	switch {
	case err == nil, errors.As(err, &problems), errors.As(err, &usage):
		return cfg, looked, err
	case errors.Is(err, errNoOverlay):
		return nil, nil, &configError{err, "without --env, the configuration holds as it is"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &configError{fmt.Errorf("there is no configuration at %s", path),
			"codemode-bridge init writes one, with the servers that your clients have; --config names another"}
	default:
		return nil, nil, &configError{err: err}
	}
}

// shown is the path of the configuration as the person wrote it on the command
// line, else path.
func (con *console) shown(path string) string {
	if con.configPath != "" {
		return con.configPath
	}
	return path
}

// policy returns the options for compiling profiles: our own files, which no call
// may name.
func (con *console) policy(path string) profiles.Options {
	o := profiles.Options{OwnFiles: []string{path, confirmed.Resolve(path), lockfile.Path(path)}}
	if overlay, err := con.overlay(path); err == nil && overlay != "" {
		o.OwnFiles = append(o.OwnFiles, overlay, confirmed.Resolve(overlay))
	}
	if places, err := config.Paths(con.Env); err == nil {
		o.OwnFiles = append(o.OwnFiles, places.ConfigFile, places.StateDir)
	}
	return o
}

// specs converts a configuration's servers for package upstream. They hold the
// secrets in clear. The environment says where the state of their boxes is.
func specs(cfg *config.Config, env config.Env) []upstream.Spec {
	return upstreams.Specs(cfg, upstreams.Options{Env: env, Launcher: worker, Document: fromDocument})
}

// given returns what each server is given, in which the recorder finds the secrets
// to hide.
func given(specs []upstream.Spec) []recorder.Server {
	var all []recorder.Server
	for _, s := range specs {
		all = append(all, recorder.Server{Env: s.Env, PassEnv: s.PassEnv, Headers: s.Headers, URL: s.URL, Secrets: s.Secrets})
	}
	return all
}

// limits converts a configuration's limits for package sandbox.
func limits(s config.Sandbox) sandbox.Limits {
	return sandbox.Limits{
		CPU: timeDuration(s.CPU), Heap: int64(s.Heap), Calls: s.Calls, Parallel: s.Parallel,
		Source: int64(s.Source), Logs: int64(s.Logs),
	}
}

// worker is the path of codemode-worker, which is installed beside this program.
func worker() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program's own folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	path := filepath.Join(filepath.Dir(self), "codemode-worker"+filepath.Ext(self))
	if _, err := os.Stat(path); err != nil {
		return "", &configError{fmt.Errorf("scripts run in a program of their own, and it is not at %s", path),
			"both programs come together and belong into one folder: unpack the whole archive, or go build -o bin/ ./cmd/..."}
	}
	return path, nil
}

// rememberLookups notes which environment variables con looks up, until names is
// called, which returns them sorted.
func rememberLookups(con *console) (names func() []string) {
	env := con.Env
	var all []string
	con.Env = func(name string) (string, bool) {
		all = append(all, name)
		return env(name)
	}
	return func() []string {
		con.Env = env
		slices.Sort(all)
		return slices.Compact(all)
	}
}

func timeDuration(d profiles.Duration) time.Duration { return time.Duration(d) }
