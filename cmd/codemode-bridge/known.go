package main

import (
	"maps"
	"os"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles/known"
)

// meanings returns what is known of the servers of a configuration.
func meanings(cfg *config.Config) map[string]gate.Meant {
	all := map[string]gate.Meant{}
	for _, name := range serverNames(cfg) {
		s := cfg.Servers[name]
		match, _ := known.Identify(started(s))
		if match.Server.Name == "" {
			continue
		}
		meant := gate.Meant{Server: match.Server, Accepted: accepts(s.Known, match), Folder: s.Cwd.Reveal(), Starts: match.Paths,
			Remote: s.Type != config.KindStdio || s.Command.Reveal() == "docker"}
		if meant.Folder == "" {
			meant.Folder, _ = os.Getwd() // without one, relative paths are doubtful
		}
		all[name] = meant
	}
	return all
}

// started returns how a server is started, without any value of a variable.
func started(s *config.Server) known.Started {
	return known.Started{Command: s.Command.Reveal(), Args: config.Reveal(s.Args), URL: s.URL.Reveal(),
		Env: slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv)}
}

// accepts reports whether a person who wrote "known": accepted accepted the facts for a
// server that is started so. Nobody can accept what nobody verified.
func accepts(accepted string, match known.Match) bool {
	name, version, pinned := strings.Cut(accepted, "@")
	return match.Verified && name == match.Server.Name && (!pinned || version == match.Version)
}
