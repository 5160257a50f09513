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
	"fmt"
	"os"

	"codemode-bridge/sandbox/confine"
	"codemode-bridge/sandbox/worker"
)

// version is the release, and commit what it was built from; the linker may set others,
// for this program and codemode-bridge the same.
var (
	version = "0.1.0"
	commit  string
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" { // codemode-bridge asks
		fmt.Printf("{\"version\":%q,\"commit\":%q}\n", version, commit)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(confine.Main())
	}
	worker.Main()
}
