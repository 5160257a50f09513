package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Drain discards what was typed at a terminal and not read yet.
func Drain(terminal *os.File) error {
	const input = 1 // FREAD
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, input)
}
