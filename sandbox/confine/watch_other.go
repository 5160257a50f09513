//go:build !linux

package confine

import (
	"errors"
	"os/exec"
	"runtime"
)

type watching struct{}

// Watch is for Linux.
func Watch(_ string, _ func() *exec.Cmd) (*Watched, error) {
	return nil, errors.New("system calls cannot be watched on " + runtime.GOOS)
}

// Listen is for programs that have a network of their own.
func (w *Watched) Listen(uint16) (Socket, error) {
	return Socket{}, errors.New("not available on " + runtime.GOOS)
}

// Follow has nothing to follow.
func (w *Watched) Follow(func(Use)) {}

// Close ends the program.
func (w *Watched) Close() { w.Program.Close() }

// Had is for Linux.
func Had(path string) bool { return OfSystem(path) }
