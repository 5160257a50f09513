//go:build unix

package main

import (
	"errors"
	"syscall"
)

// processLives reports whether there is a process with that number.
func processLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// detached makes a child the leader of a session of its own: what ends the
// terminal or the process group of its parent does not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
