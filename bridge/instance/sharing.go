package instance

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// ambient are variables that matter beside those that the configuration names
// and those that every child gets: this program, or a library in it, reads them.
var ambient = []string{
	"CODEMODE_LOGINS", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// A Sharing is what the clients of an instance must have in common beside their
// configuration: the values of variables and, if it counts, the folder.
type Sharing struct {
	Variables []string // that the configuration was read with
	// Passed are variables that servers get on top of those that every child gets.
	Passed []string
	Folder bool // a server starts in the folder of its client
}

// ErrNotShared is an edit of the configuration that an instance cannot follow:
// every client would get what the first one has.
var ErrNotShared = errors.New("windows that share this bridge may differ in it: close all windows, or use run --alone")

// Covers refuses a configuration for which the clients would need more in common than
// they have.
func (s Sharing) Covers(more Sharing) error {
	for _, name := range more.Variables {
		if !slices.Contains(s.variables(), name) {
			return fmt.Errorf("taking over the edit, which needs the variable %s: %w", name, ErrNotShared)
		}
	}
	for _, name := range more.Passed {
		if !slices.Contains(s.Passed, name) {
			return fmt.Errorf("taking over the edit, which passes the variable %s to a server: %w", name, ErrNotShared)
		}
	}
	if more.Folder && !s.Folder {
		return fmt.Errorf("taking over the edit, by which a server without cwd starts in the folder of its window: %w", ErrNotShared)
	}
	return nil
}

func (s Sharing) variables() []string { return slices.Concat(ambient, s.Variables) }

// Identity returns its part of a rendezvous's identity: the values of the variables,
// the folder if it counts, and the environment of children as NAME=VALUE.
func (s Sharing) Identity(env func(name string) (string, bool), children []string) ([]string, error) {
	folder := ""
	if s.Folder {
		var err error
		if folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("finding the folder of this window: %w", err)
		}
	}
	identity := []string{"folder", folder, "variables"}
	for _, name := range s.variables() {
		value, set := env(name)
		identity = append(identity, fmt.Sprintf("%s %t %s", name, set, value))
	}
	identity = append(identity, "children")
	children = slices.DeleteFunc(slices.Clone(children), func(entry string) bool { return strings.HasPrefix(entry, "TERM=") }) // they have no terminal
	slices.Sort(children)
	return append(identity, children...), nil
}

// Program distinguishes this program from others of the same version.
func Program() []string {
	var all []string
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if strings.HasPrefix(s.Key, "vcs.") {
				all = append(all, s.Key+"="+s.Value)
			}
		}
	}
	if self, err := os.Executable(); err == nil {
		all = append(all, self)
		if file, err := os.Stat(self); err == nil {
			all = append(all, fmt.Sprint(file.Size(), file.ModTime().UnixNano()))
		}
	}
	return all
}
