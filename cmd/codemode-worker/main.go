// Command codemode-worker runs scripts for codemode-bridge, which starts it
// and talks to it over its standard input and output. Started as
// "codemode-worker box" it puts an MCP server in a box instead, and stays as its
// first process. It is of no use by itself.
//
// It is a program of its own, not a mode of codemode-bridge, because it has
// to be small and quick to start: every session needs one, and another one after
// a script has exceeded a limit.
package main

import (
	"os"

	"codemode-bridge/sandbox/confine"
	"codemode-bridge/sandbox/worker"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(confine.Main())
	}
	worker.Main()
}
