//go:build unix

package logfile

import (
	"errors"
	"syscall"
)

// processLives reports whether there is a process with that id.
func processLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
