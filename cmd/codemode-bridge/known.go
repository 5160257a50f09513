package main

import (
	"os"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
)

// meanings returns what is known of the servers of a configuration.
func meanings(cfg *config.Config) map[string]gate.Meant {
	all := map[string]gate.Meant{}
	for _, name := range serverNames(cfg) {
		s := cfg.Servers[name]
		is := s.Recognize()
		if is.Server.Name == "" {
			continue
		}
		meant := gate.Meant{Server: is.Server, Accepted: is.Accepted, Folder: s.Cwd.Reveal(), Starts: is.Paths,
			Remote: s.Type != config.KindStdio || s.Command.Reveal() == "docker"}
		if meant.Folder == "" {
			meant.Folder, _ = os.Getwd() // without one, relative paths are doubtful
		}
		all[name] = meant
	}
	return all
}
