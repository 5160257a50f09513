//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// searchable reports that a program in PATH is a file of the very name.
const searchable = true

func sameVariable(a, b string) bool { return a == b }

// groupAttributes makes a child the leader of a group, in a session of its own. It has no
// terminal then: from ours it could read what a person types there, such as a token, since a
// process may put its own group in the foreground.
func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// A group is a child and its descendants: the child's process group and, where
// the system can tell (Linux), those that left the group but carry the marker.
type group struct{ id int }

func newGroup(p *os.Process) group { return group{id: p.Pid} }

func (g group) alive(cookie string) bool {
	if syscall.Kill(-g.id, 0) == nil {
		return true
	}
	left := marked(cookie)
	for _, p := range left {
		_ = p.Release()
	}
	return len(left) > 0
}

func (g group) terminate(cookie string) { g.signal(cookie, syscall.SIGTERM) }

func (g group) kill(cookie string) { g.signal(cookie, syscall.SIGKILL) }

func (g group) signal(cookie string, s syscall.Signal) {
	for _, p := range marked(cookie) {
		_ = p.Signal(s) // it may have ended by itself
		_ = p.Release()
	}
	_ = syscall.Kill(-g.id, s)
}

func (group) close() {}
