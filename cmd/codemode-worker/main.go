// Command codemode-worker runs scripts for codemode-bridge, which starts it
// and talks to it over its standard input and output. It is of no use by
// itself.
//
// It is a program of its own, not a mode of codemode-bridge, because it has
// to be small and quick to start: every session needs one, and another one after
// a script has exceeded a limit.
package main

import "codemode-bridge/sandbox/worker"

func main() { worker.Main() }
