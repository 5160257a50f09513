package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/profiles/known"
)

// knownForm is how a file of package known is named: by its name alone, or with the
// version that it was verified with.
var knownForm = regexp.MustCompile(`^([a-z0-9-]+)(?:@([0-9A-Za-z.-]+))?$`)

// known checks which file a server is said to be known by. Whether it holds for the
// server is for [Server.Recognize]: a newer release may know another version, and must
// start all the same.
func (c *checker) known(s *Server, at string) {
	if !c.sound(at + "/known") {
		return
	}
	names := known.Names()
	m := knownForm.FindStringSubmatch(s.Known)
	switch {
	case m == nil:
		c.at(at+"/known", `"known" takes the name of a known server, and its version if it is to be that one alone`, `write "filesystem" or "filesystem@1.2.3"; codemode-bridge servers known lists them`)
	case !slices.Contains(names, m[1]):
		hint := didYouMean(m[1], names)
		if hint == "" {
			hint = "codemode-bridge servers known lists those that there are; without one, leave it out"
		}
		c.at(at+"/known", fmt.Sprintf("no server is known as %q", m[1]), hint)
	}
}

// A Recognition says what is known of a server by the way it is started.
type Recognition struct {
	// Match is the file that describes the server; its Server has no name if none
	// does.
	known.Match
	// Accepted reports whether the person has accepted that file, so that it may
	// loosen decisions. One that is not accepted can only make them stricter.
	Accepted bool
	// Why says in a few words why the file that the configuration names is not
	// accepted; without one, what is different about a server that is started
	// nearly as a known one. It is empty if there is nothing to say.
	Why string
}

// Recognize compares how the server is started with the known servers, and with the
// one that the person has accepted. A version in their "known" must be both the one
// that is started and the one that the file was verified with; without a version, the
// file of this release holds whichever version is started.
func (s *Server) Recognize() Recognition {
	var r Recognition
	if s.Type == KindBuiltin || s.Type == KindOpenAPI {
		return r
	}
	r.Match, r.Why = known.Identify(known.Started{
		Command: s.Command.Reveal(), Args: Reveal(s.Args), URL: s.URL.Reveal(),
		Env: slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv),
	})
	if s.Known == "" {
		return r
	}
	name, version, _ := strings.Cut(s.Known, "@")
	is := r.Server.Name
	switch {
	case is != "" && is != name:
		r.Why = "it is started like " + is
	case is == "" && r.Why == "":
		r.Why = "it is not started in a way in which " + name + " is known"
	case is == "":
	case r.Server.Verified == "":
		r.Why = "what is known of it comes from its documentation and was not verified, so it only makes decisions stricter"
	case !r.Verified:
		r.Why = "it was verified as a package, not started in this way, so what is known only makes decisions stricter"
	case version != "" && version != r.Server.Verified:
		r.Why = fmt.Sprintf("version %s was accepted, and this release knows it as of %s", version, r.Server.Verified)
	case version != "" && r.Version == "":
		r.Why = fmt.Sprintf("version %s was accepted, and whichever is the latest is started", version)
	case version != "" && version != r.Version:
		r.Why = fmt.Sprintf("version %s was accepted, and %s is started", version, r.Version)
	default:
		r.Accepted = true
	}
	return r
}
