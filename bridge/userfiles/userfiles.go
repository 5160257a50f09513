// Package userfiles says where the files of one user are, by the custom of the system.
package userfiles

import (
	"errors"
	"path/filepath"
	"runtime"
)

// Locations are where things are kept for one user.
type Locations struct {
	// ConfigFile is the configuration.
	ConfigFile string
	// StateDir is for what must last: the store, the log.
	StateDir string
	// CacheDir is for what can be made again: the last catalogue.
	CacheDir string
	// DataDir is for what can be installed again: copies of the program. It is
	// empty if the home folder is not known, which nothing else needs then.
	DataDir string
}

// Of returns the default locations on this system. They follow the XDG base directories
// where those are set, and the custom of the system otherwise. Nothing is
// created. Env looks a variable up, as os.LookupEnv does; a nil one knows none.
func Of(env func(name string) (string, bool)) (Locations, error) { return On(runtime.GOOS, env) }

// Home returns the user's home as the environment has it.
func Home(env func(name string) (string, bool)) (string, bool) { return homeFolder(runtime.GOOS, env) }

const folder = "codemode-bridge"

// On is Of for a system by its name, as runtime.GOOS has it.
func On(system string, env func(name string) (string, bool)) (Locations, error) {
	get := func(name string) string {
		if env == nil {
			return ""
		}
		// The specification: "all paths must be absolute. If an
		// implementation encounters a relative path it should ignore it."
		if v, ok := env(name); ok && filepath.IsAbs(v) {
			return v
		}
		return ""
	}
	config, state, cache, data := get("XDG_CONFIG_HOME"), get("XDG_STATE_HOME"), get("XDG_CACHE_HOME"), get("XDG_DATA_HOME")
	home, _ := homeFolder(system, env)
	under := func(set *string, base string, rest ...string) {
		if *set == "" && base != "" {
			*set = filepath.Join(append([]string{base}, rest...)...)
		}
	}
	l := Locations{}
	switch system {
	case "windows":
		under(&config, get("APPDATA"))
		under(&state, get("LOCALAPPDATA"))
		under(&cache, get("LOCALAPPDATA"))
		under(&data, get("LOCALAPPDATA"))
		under(&config, home, "AppData", "Roaming")
		under(&state, home, "AppData", "Local")
		under(&cache, home, "AppData", "Local")
		under(&data, home, "AppData", "Local")
	case "darwin", "ios":
		under(&config, home, "Library", "Application Support")
		under(&state, home, "Library", "Application Support")
		under(&cache, home, "Library", "Caches")
		under(&data, home, "Library", "Application Support")
	default:
		under(&config, home, ".config")
		under(&state, home, ".local", "state")
		under(&cache, home, ".cache")
		under(&data, home, ".local", "share")
	}
	if config == "" || state == "" || cache == "" {
		return l, errors.New("finding the default folders: the home folder is not known")
	}
	l.ConfigFile = filepath.Join(config, folder, "config.json")
	l.StateDir = filepath.Join(state, folder)
	l.CacheDir = filepath.Join(cache, folder)
	if data != "" {
		l.DataDir = filepath.Join(data, folder)
	}
	// Where the system gives several of them one base, they get folders of
	// their own: emptying the cache must not empty the store.
	if state == config || state == cache {
		l.StateDir = filepath.Join(l.StateDir, "state")
	}
	if cache == config || cache == state {
		l.CacheDir = filepath.Join(l.CacheDir, "cache")
	}
	return l, nil
}

func homeFolder(system string, env func(name string) (string, bool)) (string, bool) {
	name := "HOME"
	if system == "windows" {
		name = "USERPROFILE"
	}
	if env == nil {
		return "", false
	}
	home, ok := env(name)
	if !ok || !filepath.IsAbs(home) {
		return "", false
	}
	return home, true
}
