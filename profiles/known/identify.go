package known

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Started says how a server is started or reached, as a configuration has it.
type Started struct {
	Command string
	Args    []string
	Env     []string // the names of its environment variables
	URL     string
	Boxed   bool // it does not run without a box
}

// A Match says which server was found.
type Match struct {
	Server Server
	// Verified reports that somebody compared the file with what a server started in
	// this form lists: a package of npm, at Server.Verified. What an image or an address
	// has may differ. Another version of the package is as good, tool by tool: see
	// [Tool.Describes].
	Verified bool
	// Version is the version that the configuration pins; empty if it takes
	// whatever is the latest.
	Version string
	// Paths are the program's arguments that are paths: what the server may work
	// on, where it has such a list.
	Paths []string
	// Remote reports that the program does not run on this machine, or does not see its
	// files.
	Remote bool
	// Confined reports that its browser reaches no host but this machine.
	Confined bool
	// Box is the box that the file proposes for a server that is started in this form; nil
	// for none.
	Box *Box
}

// steering are variables that decide which program is started, or what is loaded
// into it. A server that has one is not known, whatever it is called.
var steering = []string{"NODE_OPTIONS", "NODE_PATH", "PATH", "HOME", "XDG_CONFIG_HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_TLS_REJECT_UNAUTHORIZED"}

func steers(name string) bool {
	upper := strings.ToUpper(name)
	return slices.Contains(steering, upper) || slices.ContainsFunc(steeringPrefixes, func(p string) bool { return strings.HasPrefix(upper, p) })
}

var steeringPrefixes = []string{"NPM_CONFIG_", "PNPM_", "BUN_", "UV_", "PIP_", "PYTHON", "DOCKER_", "LD_", "DYLD_"}

// Identify finds the server that is started so. If there is none, why says what is
// different about one that is started nearly so; it is empty if none is.
func Identify(s Started) (m Match, why string) {
	for _, h := range heads() {
		for _, l := range h.Launch {
			version, rest, ours := l.program(s)
			if !ours {
				continue
			}
			paths, wrong := l.fits(rest, s.Env, s.Boxed)
			if wrong == "" {
				return Match{server(h.name), h.Verified != "" && l.NPM != "", version, paths, l.URL != "" || l.Docker != "", l.confined(rest), l.Confine}, ""
			}
			why = fmt.Sprintf("it is started like %s, but %s", h.name, wrong)
		}
	}
	if why == "" {
		why = byPath(s)
	}
	return Match{}, why
}

// byPath says how a server that seems to be a known one, by the path that it is started by,
// would be known. It is none: whoever can write that file, or the package.json beside it,
// decides what runs, and a workspace may bring both along.
func byPath(s Started) string {
	script := s.Command
	if base := lastPart(s.Command); base == "node" || base == "bun" || base == "deno" {
		for _, script = range s.Args {
			if script != "run" && !strings.HasPrefix(script, "-") {
				break
			}
		}
	}
	script = strings.TrimSuffix(strings.ReplaceAll(script, `\`, "/"), ".cmd")
	for _, h := range heads() {
		for _, l := range h.Launch {
			fetch := l.NPM
			inFolder := l.NPM != "" && strings.Contains(script, "/node_modules/"+l.NPM+"/")
			if fetch == "" {
				fetch = l.PyPI
			}
			base, name := lastPart(script), lastPart(fetch)
			named := (base == name || base == "mcp-"+name) && name != "mcp" && name != "mcp-server" // those are anybody's
			if fetch == "" || !inFolder && !named {
				continue
			}
			with := "npx -y "
			if l.NPM == "" {
				with = "uvx "
			} else if h.Verified != "" {
				fetch += "@" + h.Verified
			}
			return fmt.Sprintf("it seems to be %s, but is started by a name or path and not as %s%s, and any program can be there, whatever a package.json beside it says", h.name, with, fetch)
		}
	}
	return ""
}

// lastPart is what follows the last slash of a path or the name of a package.
func lastPart(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	return strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".exe")
}

// program reports whether s starts the program of l; rest are the arguments after
// what names it.
func (l Launch) program(s Started) (version string, rest []string, ours bool) {
	if l.URL != "" {
		at, ok := s.endpoint()
		return "", nil, ok && strings.TrimSuffix(at, "/") == strings.TrimSuffix(l.URL, "/")
	}
	if l.Docker != "" {
		if rest, ours = l.dockerRun(s); !ours || len(rest) == 0 {
			return "", nil, false
		}
		version, ours = imageVersion(rest[0], l.Docker)
		return version, rest[1:], ours
	}
	rest, registry := s.fetched()
	switch {
	case len(rest) == 0:
		return "", nil, false
	case l.NPM != "" && registry == npm:
		version, ours = npmVersion(rest[0], l.NPM)
	case l.PyPI != "" && registry == pypi:
		version, ours = pypiVersion(rest[0], l.PyPI)
	}
	return version, rest[1:], ours
}

// A registry is where a program comes from.
type registry int

const (
	npm registry = iota + 1
	pypi
)

// fetched returns the arguments that begin with the package that s fetches and starts,
// and where that comes from. A flag before the package could say that it is another
// one: only those that answer a question may be there.
func (s Started) fetched() ([]string, registry) {
	switch rest := s.Args; {
	case s.Command == "npx" || s.Command == "bunx":
		for len(rest) > 0 && (rest[0] == "-y" || rest[0] == "--yes") {
			rest = rest[1:]
		}
		return rest, npm
	case s.Command == "pnpm" && len(rest) > 0 && rest[0] == "dlx":
		return rest[1:], npm
	case s.Command == "uvx":
		return rest, pypi
	default:
		return nil, 0
	}
}

// endpoint returns the address that s is reached at: its own, or that of mcp-remote, a
// program that only passes messages on to an address.
func (s Started) endpoint() (string, bool) {
	if s.Command == "" {
		return s.URL, s.URL != ""
	}
	rest, from := s.fetched()
	if from != npm || len(rest) < 2 || len(s.Env) > 0 {
		return "", false
	}
	if _, ok := npmVersion(rest[0], "mcp-remote"); !ok {
		return "", false
	}
	for flags := rest[2:]; len(flags) > 0; flags = flags[2:] {
		if len(flags) < 2 || flags[0] != "--transport" && flags[0] != "--header" || strings.HasPrefix(flags[1], "-") {
			return "", false
		}
	}
	return rest[1], true
}

// dockerRun returns what follows the flags of a docker run that gives the program no
// more than the variables of l. With a folder of this machine its paths would be
// others than ours.
func (l Launch) dockerRun(s Started) (rest []string, ok bool) {
	if s.Command != "docker" || len(s.Args) == 0 || s.Args[0] != "run" {
		return nil, false
	}
	rest = s.Args[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		flag, value, joined := strings.Cut(rest[0], "=")
		rest = rest[1:]
		if slices.Contains([]string{"-i", "--interactive", "--rm", "--init"}, flag) && !joined {
			continue
		}
		if !joined {
			if len(rest) == 0 || flag != "-e" && flag != "--env" && flag != "--pull" {
				return nil, false
			}
			value, rest = rest[0], rest[1:]
		}
		name, _, _ := strings.Cut(value, "=")
		switch {
		case (flag == "--env" || flag == "-e" && !joined) && slices.Contains(l.Env, name):
		case flag == "--pull" && slices.Contains([]string{"always", "missing", "never"}, value):
		default:
			return nil, false
		}
	}
	return rest, true
}

var version = regexp.MustCompile(`^\d+(\.\d+)+(-[0-9A-Za-z.-]+)?$`)

// npmVersion takes a package's specification apart: its name, or its name with a
// version or "latest". Ranges, tags, addresses and aliases could be anything.
func npmVersion(spec, name string) (string, bool) {
	if spec == name {
		return "", true
	}
	v, ok := strings.CutPrefix(spec, name+"@")
	switch {
	case !ok:
		return "", false
	case v == "latest":
		return "", true
	default:
		return v, version.MatchString(v)
	}
}

// pypiVersion is npmVersion for a package of PyPI, as uvx has it: with == or @.
func pypiVersion(spec, name string) (string, bool) {
	spec = strings.Replace(spec, "==", "@", 1)
	return npmVersion(spec, name)
}

// imageVersion is npmVersion for an image: its name, with a tag or a digest.
func imageVersion(spec, name string) (string, bool) {
	if digest, ok := strings.CutPrefix(spec, name+"@sha256:"); ok {
		return "sha256:" + digest, len(digest) == 64
	}
	tag, ok := strings.CutPrefix(spec, name+":")
	switch {
	case spec == name, ok && tag == "latest":
		return "", true
	default:
		return tag, ok && version.MatchString(tag)
	}
}

// fits reports what of a program's arguments and variables the file does not have.
func (l Launch) fits(args, env []string, boxed bool) (paths []string, wrong string) {
	flags := l.Flags
	if boxed {
		flags = slices.Concat(flags, l.BoxedFlags)
	}
	for _, name := range env {
		if !slices.Contains(l.Env, name) {
			return nil, fmt.Sprintf("the variable %s is not one that it is known with", name)
		}
	}
	i := 0
	for at := 0; at < len(args); at++ {
		if strings.HasPrefix(args[at], "-") {
			flag, value, valued := strings.Cut(args[at], "=")
			if !valued && takes(flags, flag) {
				// Some programs take the next word for its value whatever it is, others only
				// one that is no flag.
				if at++; at == len(args) || strings.HasPrefix(args[at], "-") {
					return nil, fmt.Sprintf("the flag %s has no value that every program would take for one", flag)
				}
				value, valued = args[at], true
			}
			switch {
			case valued && takes(flags, flag, value), !valued && slices.Contains(flags, flag):
			case !boxed && (takes(l.BoxedFlags, flag) || slices.Contains(l.BoxedFlags, flag)):
				return nil, fmt.Sprintf("the flag %s takes a protection away: with it, it is known only in a box with \"require\": true", flag)
			case takes(flags, flag):
				return nil, fmt.Sprintf("the flag %s has a value that it is not known with", flag)
			default:
				return nil, fmt.Sprintf("the flag %s is not one that it is known with", flag)
			}
			continue
		}
		role := l.argRole(i)
		if role == "" {
			return nil, "it has one argument more than it is known with"
		}
		if role == Path {
			paths = append(paths, args[at])
		}
		i++
	}
	return paths, ""
}

// takes reports whether one of the flags of a file is the named one with a value, and has
// each of these: any, if it ends in "="; else the one that it has, or where it ends in
// "...", those that begin so.
func takes(flags []string, name string, values ...string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool {
		is, form, valued := strings.Cut(flag, "=")
		return valued && is == name && !slices.ContainsFunc(values, func(value string) bool {
			start, open := strings.CutSuffix(form, "...")
			return form != "" && value != form && !(open && strings.HasPrefix(value, start))
		})
	})
}

// FlagValues returns the values that a flag has among the arguments of a program.
func FlagValues(args []string, flag string) (values []string) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != flag:
		case joined:
			values = append(values, value)
		case i+1 < len(args):
			values = append(values, args[i+1])
		}
	}
	return values
}

// argRole returns the role of the program's i-th argument; empty if it has none.
func (l Launch) argRole(i int) Role {
	if n := len(l.Args); n > 0 && i >= n-1 && strings.HasSuffix(l.Args[n-1], "...") {
		return Role(strings.TrimSuffix(l.Args[n-1], "..."))
	}
	if i >= len(l.Args) {
		return ""
	}
	return Role(l.Args[i])
}
