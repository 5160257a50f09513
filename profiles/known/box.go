package known

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Box is the box that a file proposes for a server: the least that the package
// needs to do what its tools say, tried with the verified version. A person takes it over
// into their configuration, where it is "confine".
type Box struct {
	// Write are the places that the program may change, and Read those that it may read
	// besides what any program needs: [BoxWorkspace], [BoxArgs], [BoxEnv] with the name of
	// a variable, and paths below the home folder, as "~/.notes".
	Write []string `json:"write,omitempty"`
	Read  []string `json:"read,omitempty"`
	Net   Reach    `json:"net,omitzero"`
	// Run are the programs that it may start, by name; nil: any.
	Run []string `json:"run,omitempty"`
}

// The words for places.
const (
	BoxWorkspace = "workspace" // the folders that scripts work on
	BoxArgs      = "args"      // the paths among the program's arguments
	BoxEnv       = "env:"      // the folder of the file that this variable names
)

// A Reach says which hosts a program reaches: it is written as "none", "any", or a list of
// hosts. The zero Reach is none.
type Reach struct {
	Any   bool
	Hosts []string // as "api.example.com", with a port where that is not 443
}

const reachNone, reachAny = "none", "any"

// UnmarshalJSON reads the written form.
func (r *Reach) UnmarshalJSON(text []byte) error {
	var word string
	switch err := json.Unmarshal(text, &word); {
	case err != nil:
		*r = Reach{}
		return json.Unmarshal(text, &r.Hosts)
	case word == reachNone:
		*r = Reach{}
	case word == reachAny:
		*r = Reach{Any: true}
	default:
		return fmt.Errorf(`want "none", "any" or a list of hosts, not %q`, word)
	}
	return nil
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (r Reach) MarshalJSON() ([]byte, error) {
	switch {
	case r.Any:
		return json.Marshal(reachAny)
	case len(r.Hosts) == 0:
		return json.Marshal(reachNone)
	}
	return json.Marshal(r.Hosts)
}

// IsZero reports whether it is none, said by leaving "net" out.
func (r Reach) IsZero() bool { return !r.Any && len(r.Hosts) == 0 }

// String says it in words: "no network".
func (r Reach) String() string {
	switch {
	case r.Any:
		return "any network"
	case len(r.Hosts) == 0:
		return "no network"
	}
	return "reaches " + strings.Join(r.Hosts, ", ")
}

// String says in a few words what a box allows: "writes workspace, no network".
func (b Box) String() string {
	writes := "writes nothing"
	if len(b.Write) > 0 {
		writes = "writes " + strings.Join(b.Write, ", ")
	}
	return writes + ", " + b.Net.String()
}

var (
	boxHost    = regexp.MustCompile(`^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+(:[1-9][0-9]{0,4})?$`)
	boxProgram = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
)

// checkBox holds a proposed box to its form: only what somebody tried may have one.
func (s *Server) checkBox(l Launch) *mistake {
	b := l.Confine
	switch {
	case b == nil:
		return nil
	case s.Verified == "" || l.NPM == "":
		return wrong("only a package of npm whose tools were compared proposes a box").in("confine")
	}
	places := func(all []string) *mistake {
		return each(all, func(i int, place string) *mistake {
			below, home := strings.CutPrefix(place, "~/")
			name, variable := strings.CutPrefix(place, BoxEnv)
			switch {
			case slices.Contains(all[:i], place):
				return wrong("%q is there twice", place)
			case place == BoxArgs && slices.ContainsFunc(l.Args, func(role string) bool { return strings.TrimSuffix(role, "...") == string(Path) }):
			case place == BoxArgs:
				return wrong("no argument of the program is a path")
			case variable && !slices.Contains(l.Env, name):
				return wrong("%q is not a variable that it may be given", name)
			case place == BoxWorkspace, variable, home && below != "" && path.Clean(below) == below && !strings.HasPrefix(below, ".."):
			default:
				return wrong(`want "workspace", "args", "env:NAME" or a path like "~/.notes", not %q`, place)
			}
			return nil
		})
	}
	return first(
		places(b.Write).in("write"),
		places(b.Read).in("read"),
		each(b.Net.Hosts, func(_ int, host string) *mistake {
			if !boxHost.MatchString(host) {
				return wrong("%q is not exact", host)
			}
			return nil
		}).in("net"),
		each(b.Run, func(_ int, program string) *mistake {
			if !boxProgram.MatchString(program) {
				return wrong("%q is not the name of a program", program)
			}
			return nil
		}).in("run")).in("confine")
}
