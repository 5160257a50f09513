package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/join"
	"codemode-bridge/bridge/upstream"
)

// ambient are variables that matter beside those that the configuration names
// and those that every child gets: this program, or a library in it, reads them.
var ambient = []string{
	"CODEMODE_LOGINS", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// rememberLookups notes from now on which variables are looked up; what it
// returns says which those were.
func (a *app) rememberLookups() (names func() []string) {
	env := a.env
	var all []string
	a.env = func(name string) (string, bool) {
		all = append(all, name)
		return env(name)
	}
	return func() []string {
		a.env = env
		slices.Sort(all)
		return slices.Compact(all)
	}
}

// folders are where windows meet, and the group of a configuration there.
func (a *app) folders() (join.Folders, error) {
	places, err := config.Paths(a.env)
	if err != nil {
		return join.Folders{}, err
	}
	f := join.Folders{State: filepath.Join(places.StateDir, "windows"), Runtime: filepath.Join(os.TempDir(), fmt.Sprintf("codemode-bridge-%d", os.Geteuid()))}
	if dir, ok := a.env("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		f.Runtime = filepath.Join(dir, "codemode-bridge")
	}
	return f, nil
}

// meeting is where the windows meet that can be served by one process: all that
// would make a difference to their servers is part of its identity. Looked are
// the variables that the configuration was read with.
func (a *app) meeting(cfg *config.Config, looked []string) (*join.Place, error) {
	f, err := a.folders()
	if err != nil {
		return nil, err
	}
	places, err := config.Paths(a.env)
	if err != nil {
		return nil, err
	}
	identity := append([]string{"build", version, runtime.Version()}, build()...)
	identity = append(identity, "overlay", cfg.Overlay, "folders", places.StateDir, places.CacheDir, places.ConfigFile)
	var passed []string
	folder := ""
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		if s.Disabled || s.Type != config.KindStdio {
			continue
		}
		passed = append(passed, s.PassEnv...)
		if s.Cwd.IsZero() { // it starts where the window did
			if folder, err = os.Getwd(); err != nil {
				return nil, fmt.Errorf("finding the folder of this window: %w", err)
			}
		}
	}
	identity = append(identity, "folder", folder, "variables")
	for _, name := range slices.Concat(ambient, looked) {
		value, set := a.env(name)
		identity = append(identity, fmt.Sprintf("%s %t %s", name, set, value))
	}
	identity = append(identity, "children")
	children := upstream.Inherited(passed, os.Environ())
	children = slices.DeleteFunc(children, func(entry string) bool { return strings.HasPrefix(entry, "TERM=") }) // they have none
	slices.Sort(children)
	return join.At(f, cfg.File, append(identity, children...))
}

// build tells this program from another of the same version.
func build() []string {
	var all []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if strings.HasPrefix(s.Key, "vcs.") {
				all = append(all, s.Key+"="+s.Value)
			}
		}
	}
	if self, err := os.Executable(); err == nil {
		all = append(all, self)
		if info, err := os.Stat(self); err == nil {
			all = append(all, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
		}
	}
	return all
}
