package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Drain discards what was typed at a terminal and not read yet.
func Drain(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
