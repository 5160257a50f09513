// Command codemode-worker runs scripts for codemode-bridge, which starts it
// and speaks to it on its standard input and output. It is of no use by
// itself.
//
// It is a program of its own, and not a mode of codemode-bridge, because it
// has to be small and quick to start: one is always about to be needed.
package main

import "codemode-bridge/sandbox/worker"

func main() { worker.Main() }
