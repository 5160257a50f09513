package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
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
func rememberLookups(con *console) (names func() []string) {
	env := con.env
	var all []string
	con.env = func(name string) (string, bool) {
		all = append(all, name)
		return env(name)
	}
	return func() []string {
		con.env = env
		slices.Sort(all)
		return slices.Compact(all)
	}
}

// hostFolders are where windows meet, and the group of a configuration there.
func hostFolders(con *console) (instance.Folders, error) {
	places, err := config.Paths(con.env)
	if err != nil {
		return instance.Folders{}, err
	}
	f := instance.Folders{State: filepath.Join(places.StateDir, "windows"), Runtime: filepath.Join(os.TempDir(), fmt.Sprintf("codemode-bridge-%d", os.Geteuid()))}
	if dir, ok := con.env("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		f.Runtime = filepath.Join(dir, "codemode-bridge")
	}
	return f, nil
}

// A sharing is what the windows of a process have in common beside their
// configuration: the values of these variables and, if it counts, the folder.
type sharing struct {
	variables []string
	passed    []string // to children
	folder    bool
	only      func() bool // there has never been but one window; set by the host
}

// shares is what windows need to have in common for a configuration.
func shares(cfg *config.Config, looked []string) sharing {
	s := sharing{variables: slices.Concat(ambient, looked)}
	for _, name := range cfg.ServerNames() {
		if server := cfg.Servers[name]; !server.Disabled && server.Type == config.KindStdio {
			s.passed = append(s.passed, server.PassEnv...)
			s.folder = s.folder || server.Cwd.IsZero() // it starts where the window did
		}
	}
	return s
}

// errNotShared is an edit that windows that share a process cannot follow: each
// would get what the first one has.
var errNotShared = errors.New("windows that share this bridge may differ in it: close all windows, or use run --alone")

// covers refuses a configuration for which the windows would have to have more
// in common than they do.
func (s *sharing) covers(cfg *config.Config, looked []string) error {
	if s == nil || s.only() {
		return nil
	}
	more := shares(cfg, looked)
	for _, name := range more.variables {
		if !slices.Contains(s.variables, name) {
			return fmt.Errorf("taking over the edit, which needs the variable %s: %w", name, errNotShared)
		}
	}
	for _, name := range more.passed {
		if !slices.Contains(s.passed, name) && len(upstream.Inherited(nil, []string{name + "="})) == 0 {
			return fmt.Errorf("taking over the edit, which passes the variable %s to a server: %w", name, errNotShared)
		}
	}
	if more.folder && !s.folder {
		return fmt.Errorf("taking over the edit, by which a server without cwd starts in the folder of its window: %w", errNotShared)
	}
	return nil
}

// meetingPlace is where the windows meet that can be served by one process: all that
// would make a difference to their servers is part of its identity. Looked are
// the variables that the configuration was read with.
func meetingPlace(con *console, cfg *config.Config, looked []string) (*instance.Place, error) {
	f, err := hostFolders(con)
	if err != nil {
		return nil, err
	}
	places, err := config.Paths(con.env)
	if err != nil {
		return nil, err
	}
	identity := append([]string{"build", version, runtime.Version()}, programBuild()...)
	identity = append(identity, "overlay", cfg.Overlay, "folders", places.StateDir, places.CacheDir, places.ConfigFile)
	same, folder := shares(cfg, looked), ""
	if same.folder {
		if folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("finding the folder of this window: %w", err)
		}
	}
	identity = append(identity, "folder", folder, "variables")
	for _, name := range same.variables {
		value, set := con.env(name)
		identity = append(identity, fmt.Sprintf("%s %t %s", name, set, value))
	}
	identity = append(identity, "children")
	children := upstream.Inherited(same.passed, os.Environ())
	children = slices.DeleteFunc(children, func(entry string) bool { return strings.HasPrefix(entry, "TERM=") }) // they have none
	slices.Sort(children)
	return instance.At(f, cfg.File, append(identity, children...))
}

// programBuild tells this program from another of the same version.
func programBuild() []string {
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
