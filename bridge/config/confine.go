package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/strict"

	"golang.org/x/net/idna"
)

// A Confine is the box that the program of a stdio server runs in: what the system lets
// it do, whatever it tries.
type Confine struct {
	// Write are the folders and files that it may change, and Read those that it may
	// read besides what any program needs; absolute. [WorkspaceWord] stands for the
	// folders of the workspace. Of several that a path is within, the nearest counts.
	Write Folders `json:"write,omitempty" expand:"no"`
	Read  Folders `json:"read,omitempty" expand:"no"`
	// Net says which hosts it reaches.
	Net Net `json:"net,omitzero" expand:"no"`
	// Run are the programs that it may start besides itself: absolute paths, and names
	// to be looked up in its PATH. Nil: any that it can read.
	Run Programs `json:"run,omitzero" expand:"no"`
	// Require refuses to start the server where the system can't enforce all of it.
	Require bool `json:"require,omitempty"`
}

// Programs are written as a list, or as a string if there is one.
type Programs []string

// UnmarshalJSON reads a string or a list of strings.
func (p *Programs) UnmarshalJSON(text []byte) error {
	var all Folders
	if all.UnmarshalJSON(text) != nil {
		return wrong(`write "git", or ["git", "~/bin/tool"]; an empty list means none`, "must be a program or a list of programs")
	}
	*p = Programs(all)
	return nil
}

// WorkspaceWord stands in a box for the folders of the workspace.
const WorkspaceWord = "workspace"

// A Net is "none", "any", or a list of hosts: "api.example.com", "*.example.com:8443".
// Without a port it is 443.
type Net struct {
	Any   bool
	Hosts []NetHost
}

// A NetHost is one host of a Net.
type NetHost struct {
	// Name is a host name in lower case, such a name after "*." for all below it, or
	// an IP address. This machine is "localhost", never one of its addresses.
	Name string
	Port uint16
}

const (
	netNone, netAny = "none", "any"
	netHint         = `write "none", "any", or a list of hosts: ["api.example.com", "*.example.com:8443"]`

	defaultPort = 443
	// maxPorts is how many ports the hosts of a box may have: it listens on each, and
	// passes the sockets on all at once (sandbox/confine).
	maxPorts = 63
)

// UnmarshalJSON reads the written form. A host is only taken over as it is written:
// the checker reads it, and says where a mistake stands.
func (n *Net) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		switch word {
		case netNone:
			*n = Net{}
		case netAny:
			*n = Net{Any: true}
		default:
			return wrong(cmp.Or(didYouMean(word, []string{netNone, netAny}), netHint), `must be "none", "any" or a list of hosts`)
		}
		return nil
	}
	var hosts []string
	if json.Unmarshal(text, &hosts) != nil {
		return wrong(netHint, `must be "none", "any" or a list of hosts`)
	}
	*n = Net{}
	for _, host := range hosts {
		n.Hosts = append(n.Hosts, NetHost{Name: host})
	}
	return nil
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (n Net) MarshalJSON() ([]byte, error) {
	switch {
	case n.Any:
		return json.Marshal(netAny)
	case len(n.Hosts) == 0:
		return json.Marshal(netNone)
	}
	hosts := make([]string, len(n.Hosts))
	for i, h := range n.Hosts {
		hosts[i] = h.String()
	}
	return json.Marshal(hosts)
}

// IsZero reports whether there is no network.
func (n Net) IsZero() bool { return !n.Any && len(n.Hosts) == 0 }

// String is the written form of a host, without the usual port.
func (h NetHost) String() string {
	name := h.Name
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if h.Port == defaultPort {
		return name
	}
	return name + ":" + strconv.Itoa(int(h.Port))
}

// Covers reports whether a box with this host also reaches the other one.
func (h NetHost) Covers(o NetHost) bool {
	domain, wild := strings.CutPrefix(h.Name, "*.")
	return h.Port == o.Port && (h.Name == o.Name || wild && strings.HasSuffix(o.Name, "."+domain))
}

// ParseNetHost reads a host as the list of a [Net] has it. The error says what is wrong
// with it, and what to write.
func ParseNetHost(text string) (NetHost, error) {
	h, m := parseNetHost(text)
	if m != nil {
		return NetHost{}, errors.New(strings.TrimSuffix(m.Message+"; "+m.Hint, "; "))
	}
	return h, nil
}

func parseNetHost(text string) (NetHost, *strict.Mistake) {
	bad := func(hint, format string, args ...any) (NetHost, *strict.Mistake) {
		return NetHost{}, &strict.Mistake{Message: fmt.Sprintf("%q ", text) + fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case strings.TrimSpace(text) == "":
		return NetHost{}, &strict.Mistake{Message: `"net" has an empty host`, Hint: "leave it out"}
	case strings.Contains(text, "${"):
		return NetHost{}, &strict.Mistake{Message: "variables are not filled in here", Hint: "write the host"}
	case text == netAny, text == netNone, text == "*":
		word := text
		if text == "*" {
			word = netAny
		}
		return bad(fmt.Sprintf(`write "net": %q, without a list`, word), "is no host")
	case strings.Contains(text, "://"):
		return bad("write the host alone, with its port if that is not 443", "is an address of a page, not a host")
	case strings.Contains(text, "/"):
		return bad("write the host alone; a range of addresses can't be named, but each of them can", "is not a host")
	case strings.Contains(text, "@"):
		return bad("write the host alone", "is not a host")
	}
	name, port, ok := hostAndPort(text)
	if !ok {
		return bad("ports go from 1 to 65535, and each is named; a host without one has 443", "has no valid port")
	}
	if a, err := netip.ParseAddr(name); err == nil {
		a = a.Unmap()
		switch {
		case a.Zone() != "":
			return bad("leave the zone out", "names one interface of this machine")
		case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return bad("", "is the address of no host")
		case a.IsLoopback():
			if a != netip.AddrFrom4([4]byte{127, 0, 0, 1}) && a != netip.IPv6Loopback() {
				return bad(`write "localhost" and the port`, "is an address of this machine")
			}
			return NetHost{"localhost", port}, nil
		}
		return NetHost{a.String(), port}, nil
	}
	name = strings.ToLower(name)
	domain, wild := strings.CutPrefix(name, "*.")
	switch ascii, err := idna.Lookup.ToASCII(domain); {
	case strings.Contains(domain, "*"):
		return bad(`"*." stands at the beginning, for all names below a domain: "*.example.com"`, "is not a host")
	case err == nil && ascii != domain:
		if wild {
			ascii = "*." + ascii
		}
		return bad(fmt.Sprintf("write %q, which nobody can take for another name", ascii), "has letters that names of hosts do not have")
	case len(domain) > 253, !hostName.MatchString(domain), slices.ContainsFunc(strings.Split(domain, "."), func(label string) bool { return len(label) > 63 }):
		return bad(netHint, "is not a host")
	case !strings.ContainsFunc(domain[strings.LastIndexByte(domain, '.')+1:], func(r rune) bool { return r < '0' || r > '9' }):
		return bad("an address has four numbers, or stands in square brackets", "is not a host")
	case wild && !strings.Contains(domain, "."):
		return bad(`name a domain: "*.example.com"`, "would be half of the internet")
	}
	return NetHost{name, port}, nil
}

// hostAndPort splits a host of a box. IPv6 addresses stand in square brackets.
func hostAndPort(text string) (name string, port uint16, ok bool) {
	name, rest, found := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		var closed bool
		if name, rest, closed = strings.Cut(text[1:], "]"); !closed {
			return "", 0, false
		}
		if a, err := netip.ParseAddr(name); err != nil || !a.Is6() {
			return "", 0, false
		}
		if rest, found = strings.CutPrefix(rest, ":"); !found && rest != "" {
			return "", 0, false
		}
	}
	if !found {
		return name, defaultPort, true
	}
	n, err := strconv.ParseUint(rest, 10, 16)
	return name, uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == rest
}
