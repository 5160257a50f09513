package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// drain discards what was typed at a terminal and not read yet.
func drain(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
