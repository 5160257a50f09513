//go:build unix

package upstream

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A server's program has a session of its own, and so no terminal: a process of ours could
// put itself in the foreground there, and read the token that a person types.
func TestServersHaveNoTerminal(t *testing.T) {
	s := open(t, Options{}, script{}.stdio(t))
	ready(t, s)
	pid := s.Status()[0].PID
	session, err := unix.Getsid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); session != pid || group != pid {
		t.Errorf("process %d is of session %d and group %d (%v); it should lead its own", pid, session, group, err)
	}
}
