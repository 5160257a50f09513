// Package setup imports the MCP servers of a person's clients into a configuration
// of the bridge, and installs the bridge in the clients' files. It is what init,
// install, uninstall and servers add do, without their questions and output.
//
// Package clients reads and edits the clients' files; this package turns what they
// say into text of our own configuration:
//
//	clients.Server --Import.Add--> Server --Server.Text--> "files": { "command": ... }
//
// An [Import] gives each server a unique name and merges equal ones. [First] writes
// a new configuration from what an Import found. An [Installation] puts the bridge
// into one client's file and may take over that client's servers; a [Removal] undoes
// it. Nothing is written before Write is called, so that a person can be shown a
// [Diff] and asked.
//
// Configurations and clients' files hold secrets in clear text. The texts for people
// (Runs, Remark, Row, Diff) hide them.
package setup

import (
	"errors"
	"fmt"

	"codemode-bridge/bridge/config"
)

// EntryName is what clients call the bridge. It is short because tools have
// full names there, which have a limit.
const EntryName = "codemode"

// ServersKey is where a configuration has its servers.
func ServersKey(cfg *config.Config) string {
	if cfg.Has("/mcpServers") {
		return "/mcpServers"
	}
	return "/servers"
}

// firstProblem describes the first mistake of a configuration, without its place.
func firstProblem(err error) string {
	var problem *config.FieldError
	if errors.As(err, &problem) {
		if problem.Hint != "" {
			return problem.Message + " (" + problem.Hint + ")"
		}
		return problem.Message
	}
	return err.Error()
}

// count is a number of things: 1 server, 2 servers.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
