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
	// a variable, [BoxFlag] with a flag, and paths below the home folder, as "~/.notes".
	Write []string `json:"write,omitempty"`
	Read  []string `json:"read,omitempty"`
	Net   Reach    `json:"net,omitzero"`
	// Run are the programs that it may start, by name; nil: any.
	Run []string `json:"run,omitempty"`
	// With are flags without which no box is proposed, and Without are flags and variables
	// with which none is: nobody has tried it so, or it needs more then.
	With    []string `json:"with,omitempty"`
	Without []string `json:"without,omitempty"`
	// Browser is there for a program that starts a browser.
	Browser *Browser `json:"browser,omitempty"`
}

// A Browser says how a program starts its browser in a box. A browser makes a sandbox of
// its own out of namespaces, which no box lets it make: it is started without, and the box,
// which has to hold as a whole then, takes its place.
type Browser struct {
	// Path is the flag that names the program of the browser, and Adds are the flags that
	// leave its own sandbox out. Both are added to the launch along with the box.
	Path string   `json:"path"`
	Adds []string `json:"adds"`
}

// Flags are those that start the browser with that program in a box.
func (b *Browser) Flags(program string) []string {
	return append([]string{b.Path + program}, b.Adds...)
}

// Own returns the arguments of a program without the flags at their end that a proposal
// has added.
func (b *Browser) Own(args []string) []string {
	for n := len(args); n > 0 && (strings.HasPrefix(args[n-1], b.Path) || slices.Contains(b.Adds, args[n-1])); n-- {
		args = args[:n-1]
	}
	return args
}

// The words for places.
const (
	BoxWorkspace = "workspace" // the folders that scripts work on
	BoxArgs      = "args"      // the paths among the program's arguments
	BoxEnv       = "env:"      // the folder of the file that this variable names
	BoxFlag      = "flag:"     // the folder of the file that this flag names, as a path or as sqlite:///path
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

// Fits says what keeps a program with these arguments and variables from the box, and what
// to do about it; why is empty if nothing does.
func (b Box) Fits(args, env []string) (why, do string) {
	has := func(word string) bool {
		return slices.Contains(env, word) || slices.ContainsFunc(args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return flag == strings.TrimSuffix(word, "=")
		})
	}
	var missing []string
	for _, flag := range b.With {
		if !has(flag) {
			missing = append(missing, flag)
		}
	}
	flags := strings.Join(missing, " and ")
	switch i := slices.IndexFunc(b.Without, has); {
	case i >= 0:
		name := strings.TrimSuffix(b.Without[i], "=")
		return "no box was tried with " + name, "leave " + name + " out"
	case len(missing) > 0 && b.Browser != nil:
		return "a browser in a box shows no window and keeps no profile", "if it needs neither, add " + flags + " to its args"
	case len(missing) > 0:
		return "no box was tried without " + flags, "add that to its args"
	}
	return "", ""
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
	text := writes + ", " + b.Net.String()
	if b.Browser != nil {
		text += ", its browser without a sandbox of its own"
	}
	return text
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
			flag, flagged := strings.CutPrefix(place, BoxFlag)
			switch {
			case slices.Contains(all[:i], place):
				return wrong("%q is there twice", place)
			case place == BoxArgs && slices.ContainsFunc(l.Args, func(role string) bool { return strings.TrimSuffix(role, "...") == string(Path) }):
			case place == BoxArgs:
				return wrong("no argument of the program is a path")
			case variable && !slices.Contains(l.Env, name):
				return wrong("%q is not a variable that it may be given", name)
			case flagged && !takes(l.Flags, flag):
				return wrong("%q is no flag with a value", flag)
			case place == BoxWorkspace, variable, flagged, home && below != "" && path.Clean(below) == below && !strings.HasPrefix(below, ".."):
			default:
				return wrong(`want "workspace", "args", "env:NAME", "flag:--NAME" or a path like "~/.notes", not %q`, place)
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
		}).in("run"),
		l.among(b.With, false).in("with"),
		l.among(b.Without, true).in("without"),
		b.Browser.check(l).in("browser")).in("confine")
}

// among checks that words are flags of l, or perhaps variables.
func (l Launch) among(words []string, env bool) *mistake {
	return each(words, func(_ int, word string) *mistake {
		name, valued := strings.CutSuffix(word, "=")
		if slices.Contains(l.Flags, word) || valued && takes(l.Flags, name) || env && slices.Contains(l.Env, word) {
			return nil
		}
		return wrong("%q is not one of its flags or variables", word)
	})
}

// check sees to it that only what is fine in a box is added to a launch.
func (b *Browser) check(l Launch) *mistake {
	if b == nil {
		return nil
	}
	switch {
	case len(b.Adds) == 0:
		return wrong("no flag leaves the sandbox of the browser out").in("adds")
	case !strings.HasSuffix(b.Path, "="):
		return wrong("want a flag with a value").in("path")
	}
	return each(append([]string{b.Path}, b.Adds...), func(_ int, flag string) *mistake {
		if !slices.Contains(l.BoxedFlags, flag) {
			return wrong("%q is not one of boxedFlags", flag)
		}
		return nil
	})
}
