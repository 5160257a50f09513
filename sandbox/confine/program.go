package confine

import (
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
)

// Names is where the addresses come from that the names of a box get inside it: a network
// for tests of networks (RFC 2544), which nothing else uses.
var Names = netip.MustParsePrefix("198.18.0.0/15")

// A Socket is a socket of a box that the bridge serves.
type Socket struct {
	File *os.File
	Kind SocketKind
	Port uint16 // of a Relay
}

// A SocketKind says what for.
type SocketKind string

// The kinds of sockets.
const (
	Lookup SocketKind = "lookup" // questions about names, UDP
	Relay  SocketKind = "relay"  // connections to names, TCP
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
	temp    ending
	remove  func() // its control group; nil: it has none
}

// An ending removes a folder when it is closed, if there is one.
type ending struct{ folder string }

func (e ending) Close() {
	if e.folder != "" {
		os.RemoveAll(e.folder)
	}
}

// Close ends the program and all that it started, if they still run, and its sockets.
func (p *Program) Close() {
	p.control.Close()
	for _, s := range p.Sockets {
		s.File.Close()
	}
	p.temp.Close()
	if p.remove != nil {
		p.remove()
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
