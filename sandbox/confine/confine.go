// Package confine keeps a program in a box: where it may read and write, which
// hosts it reaches, what it may start.
//
// The bridge starts an MCP server in a box through a small program of its own, the
// launcher (codemode-worker with the first argument "box"). The launcher gives up,
// step by step, what the box does not allow, says which steps hold, and then
// starts the server, which inherits all of it:
//
//	bridge                          launcher                       server
//	Start: new namespaces   ──────▶
//	the order, with the box ──────▶ its own root, Landlock,
//	                                capabilities, seccomp
//	                        ◀────── the steps, the listeners
//	answers names, relays           starts it, and waits   ──────▶ runs confined
//
// Nothing of it can be undone by the server, nor by what the server starts. When the
// launcher ends, all of them end, and it ends with the bridge.
//
// On Linux a box is made of
//
//	files      a root of its own that holds what the box names and what any program
//	           needs, and nothing else: no home, no agent's socket, no key
//	landlock   the same once more, for kernels or containers without the first
//	processes  it sees and signals its own only
//	network    a network of its own, without a way out; see Net
//	calls      system calls that no server needs are refused
//	powers     no capability, and no way to get one
//	limits     its processes and memory are bounded; see Delegation
//
// Where the system refuses a step the others hold, and Steps says why; what the box
// is then still worth, Holds tells.
package confine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Box is what a program may do.
type Box struct {
	Write []string `json:"write"` // folders and files, absolute, that it may change
	Read  []string `json:"read"`  // those that it may read, besides what any program needs
	Net   Net      `json:"net"`
	Run   []string `json:"run"` // programs that it may start, absolute; nil: any that it can read
	// Others are folders that programs in other boxes may write. A link in them counts as
	// one in Write does: whoever made it does not choose what this box holds.
	Others []string `json:"others,omitempty"`
	// Require refuses to start the program where a part of the box can't be enforced.
	Require bool `json:"require"`
}

// Net says which hosts a program reaches.
type Net struct {
	Any   bool   `json:"any"`   // all that this machine reaches
	Hosts []Host `json:"hosts"` // else these; none of them: no network
}

// A Host is a name with a port that a program may connect to.
type Host struct {
	// Name is a host name, "*." and a domain for all names below it, or an address.
	Name string `json:"name"`
	Port uint16 `json:"port"`
}

// None reports whether there is no network at all.
func (n Net) None() bool { return !n.Any && len(n.Hosts) == 0 }

// A Step is one part of a box.
type Step string

// The steps, in the order in which they are taken.
const (
	Files     Step = "files"
	Processes Step = "processes"
	Network   Step = "network"
	Landlock  Step = "landlock"
	Powers    Step = "powers"
	Calls     Step = "calls"
	Limits    Step = "limits"
)

// Steps says of each step that it is "on", or why it is not.
type Steps map[Step]string

const on = "on"

// On reports whether a step holds.
func (s Steps) On(step Step) bool { return s[step] == on }

func (s Steps) record(step Step, err error) {
	s[step] = on
	if err != nil {
		s[step] = err.Error()
	}
}

// Off lists the steps that do not hold, with their reasons, by name.
func (s Steps) Off() []string {
	var off []string
	for _, step := range slices.Sorted(maps.Keys(s)) {
		if !s.On(step) {
			off = append(off, string(step)+": "+s[step])
		}
	}
	return off
}

// A Hold is what a box enforces, by the steps that hold.
type Hold struct {
	Writes bool // it writes nowhere but where the box says
	Reads  bool // it reads nothing but what the box and any program needs
	Net    bool // it reaches no host but those of the box
}

// Holds says what a box with these steps enforces.
func (b Box) Holds(s Steps) Hold {
	files := s.On(Files) || s.On(Landlock) && s.On(Calls) // Landlock leaves sockets of the file system
	return Hold{
		Writes: files,
		Reads:  files,
		Net:    !b.Net.Any && s.On(Network),
	}
}

// Lacks says what of a box is not enforced with these steps, each with the steps that
// would have and why they do not hold. What only backs up another step is not lacking.
func (b Box) Lacks(s Steps) []string {
	var lacks []string
	without := func(what string, steps ...Step) {
		var why []string
		for _, step := range steps {
			why = append(why, fmt.Sprintf("%s: %s", step, cmp.Or(s[step], "not tried")))
		}
		lacks = append(lacks, what+" ("+strings.Join(why, "; ")+")")
	}
	holds := b.Holds(s)
	if !holds.Writes || !holds.Reads {
		without("which files it may write and read", Files, Landlock)
	}
	if !holds.Net && !b.Net.Any {
		without("which hosts it reaches", Network)
	}
	if b.Run != nil && !s.On(Landlock) {
		without("which programs it may start", Landlock)
	}
	for _, step := range []Step{Powers, Calls} {
		if !s.On(step) {
			without("that it stays in its box", step)
		}
	}
	return lacks
}

// A LacksError says that the system can't enforce a box that requires it. Nothing was
// started.
type LacksError struct{ Lacks []string }

func (e *LacksError) Error() string {
	return "its box is required, and this system does not enforce " + strings.Join(e.Lacks, ", nor ")
}

// String says in a few words what a box allows: "writes /home/me/app, no network".
func (b Box) String() string {
	text := "writes nothing"
	if len(b.Write) > 0 {
		text = "writes " + strings.Join(b.Write, ", ")
	}
	switch {
	case b.Net.Any:
		text += ", any network"
	case b.Net.None():
		text += ", no network"
	default:
		var names []string
		for _, h := range b.Net.Hosts {
			if !slices.Contains(names, h.Name) {
				names = append(names, h.Name)
			}
		}
		text += ", reaches " + strings.Join(names, ", ")
	}
	return text
}
