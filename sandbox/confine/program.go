package confine

import (
	"io"
	"os/exec"
	"strings"
)

// maxSockets bounds how many sockets a box passes on: one for names, and one for each
// port.
const maxSockets = 64

// A Program runs in a box.
type Program struct {
	Cmd     *exec.Cmd // the launcher, whose end is the program's
	Steps   Steps
	Sockets []Socket // that whoever started it serves

	control io.Closer
}

// Close ends the program and all that it started, if they still run, and its sockets.
func (p *Program) Close() {
	p.control.Close()
	for _, s := range p.Sockets {
		s.File.Close()
	}
}

// variable returns the value of an environment's last entry of that name.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
