package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// drain discards what was typed at a terminal and not read yet.
func drain(terminal *os.File) error {
	const input = 1 // FREAD
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, input)
}
