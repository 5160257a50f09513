package upstream

import (
	"cmp"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/sandbox/confine"
)

// NotConfined is what people read of a child that has no box.
const NotConfined = "not confined"

// steps are the steps of a box in the order in which they are taken.
var steps = []confine.Step{confine.Files, confine.Processes, confine.Network, confine.Landlock, confine.Powers, confine.Calls, confine.Limits}

// Lacks lists the steps that do not hold and that no other step stands in for, each
// with why: "network: operation not permitted". The zero value lacks nothing.
func (b *Boxed) Lacks() []string {
	if b == nil {
		return nil
	}
	lacking := map[confine.Step]bool{
		confine.Files:    !b.Held.Writes || !b.Held.Reads,
		confine.Network:  !b.Box.Net.Any && !b.Held.Net,
		confine.Landlock: b.Box.Run != nil && !b.Steps.On(confine.Landlock),
		confine.Powers:   !b.Steps.On(confine.Powers),
		confine.Calls:    !b.Steps.On(confine.Calls),
	}
	var all []string
	for _, step := range steps {
		if lacking[step] {
			all = append(all, string(step)+": "+cmp.Or(b.Steps[step], "not tried"))
		}
	}
	return all
}

// On names the steps that hold, in order: "files processes network".
func (b *Boxed) On() string {
	if b == nil {
		return ""
	}
	var on []string
	for _, step := range steps {
		if b.Steps.On(step) {
			on = append(on, string(step))
		}
	}
	return strings.Join(on, " ")
}

// Line is the box as a list of servers has it: "confined: writes app, no network", or
// "confined in part: writes app; not on: network: no namespaces".
func (b *Boxed) Line() string {
	if b == nil {
		return NotConfined
	}
	lacks := b.Lacks()
	if !b.Held.Writes && !b.Held.Net {
		return NotConfined + ": " + strings.Join(lacks, "; ")
	}
	var all []string
	if b.Held.Writes {
		all = append(all, "writes "+folders(b.Box.Write, filepath.Base))
	}
	if text := b.network(); text != "" {
		all = append(all, text)
	}
	if len(lacks) == 0 {
		return "confined: " + strings.Join(all, ", ")
	}
	return "confined in part: " + strings.Join(all, ", ") + "; not on: " + strings.Join(lacks, "; ")
}

// Sentence is what holds as a person who is asked reads it: "confined to /home/me/app,
// no network". Only what the system enforces is in it.
func (b *Boxed) Sentence() string {
	if b == nil || !b.Held.Writes && !b.Held.Net {
		return NotConfined
	}
	to := "confined in its network only"
	if b.Held.Writes {
		to = "confined to writing " + folders(b.Box.Write, func(path string) string { return path })
		if len(b.Box.Write) > 0 && b.Held.Reads {
			to = "confined to " + folders(b.Box.Write, func(path string) string { return path })
		}
	}
	if text := b.network(); text != "" {
		to += ", " + text
	}
	return to
}

// hosts is the network of the box as a configuration has it: none, any or hosts.
func (b *Boxed) hosts() any {
	switch {
	case b.Box.Net.Any:
		return "any"
	case b.Box.Net.None():
		return "none"
	}
	var hosts []string
	for _, h := range b.Box.Net.Hosts {
		hosts = append(hosts, h.Name+":"+strconv.Itoa(int(h.Port)))
	}
	return hosts
}

// network says which hosts it reaches; empty if the system would not keep it to them.
func (b *Boxed) network() string {
	switch {
	case b.Box.Net.Any:
		return "any network"
	case !b.Held.Net:
		return ""
	case b.Box.Net.None():
		return "no network"
	}
	var names []string
	for _, h := range b.Box.Net.Hosts {
		name := h.Name
		if h.Port != 443 { // as in a configuration
			name = net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
		}
		names = append(names, name)
	}
	return "reaches " + few(names)
}

func folders(paths []string, shown func(string) string) string {
	if len(paths) == 0 {
		return "nothing"
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = shown(path)
	}
	return few(names)
}

// few lists at most three names.
func few(names []string) string {
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), "more")
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

// Boxed says what holds the child of a server now; nil if it has no box or there is no
// child. Where sessions have children of their own, only what holds all of them counts.
func (s *Set) Boxed(name string) *Boxed {
	s.mu.Lock()
	one := s.servers[name]
	var owned []*server
	for of, own := range s.owned {
		if of.server == name {
			owned = append(owned, own.server)
		}
	}
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	box := one.status().Box
	for _, own := range owned {
		if its := own.status().Box; box != nil && its != nil {
			box.Held.Writes = box.Held.Writes && its.Held.Writes
			box.Held.Reads = box.Held.Reads && its.Held.Reads
			box.Held.Net = box.Held.Net && its.Held.Net
		}
	}
	return box
}

// Beyond says what of an error that a tool answered with the box of its server may be the
// reason for, and what lets the server do that; empty if the box is not why.
func (s *Set) Beyond(name, text string) string {
	s.mu.Lock()
	one := s.servers[name]
	s.mu.Unlock()
	if one == nil {
		return ""
	}
	one.mu.Lock()
	now := one.session
	one.mu.Unlock()
	if now == nil {
		return ""
	}
	return now.process.beyondIn(name, text)
}

// A BoxStatus is what keeps the program of a running server, for people and programs.
// Its keys are promised in docs/reference/cli.md.
type BoxStatus struct {
	Is    string        `json:"is"` // see Boxed.Line
	Write []string      `json:"write,omitempty"`
	Read  []string      `json:"read,omitempty"`
	Net   any           `json:"net,omitempty"`   // none, any, or the hosts with their ports
	Steps confine.Steps `json:"steps,omitempty"` // each "on", or why it is not
}

// BoxStatus returns what keeps the server's program; nil if none runs here now.
func (s Status) BoxStatus() *BoxStatus {
	switch {
	case s.Kind != Stdio || s.PID == 0:
		return nil
	case s.Box == nil:
		return &BoxStatus{Is: NotConfined}
	}
	return &BoxStatus{s.Box.Line(), s.Box.Box.Write, s.Box.Box.Read, s.Box.hosts(), s.Box.Steps}
}
