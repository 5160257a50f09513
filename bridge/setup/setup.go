// Package setup brings the MCP servers that a person's clients have into a
// configuration of the bridge, and the bridge into the files of the clients. It
// is what init, install, uninstall and servers add do, without their questions
// and output.
//
// Package clients reads and edits the clients' files; here what they say becomes
// text of our own configuration:
//
//	clients.Server --Import.Add--> Server --Server.Text--> "files": { "command": ... }
//
// An [Import] gives each server a name that no other has and folds equal ones
// into one. [First] writes a whole new configuration of what an Import found. An
// [Installation] puts the bridge into one client's file and may take that
// client's servers over; a [Removal] undoes it. Nothing is written before Write is
// called, so that a person can be shown a [Diff] and asked.
//
// Configurations and clients' files hold secrets in clear. What is meant for people
// here (Runs, Remark, Row, Diff) has them hidden.
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

// firstProblem is what is wrong with a configuration, in the words of the first
// mistake and without its place.
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
