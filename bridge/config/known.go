package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

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

// Recognize says what is known of the server, and whether the person has accepted
// that for it.
func (s *Server) Recognize() known.Recognition {
	if s.Type == KindBuiltin || s.Type == KindOpenAPI {
		return known.Recognition{}
	}
	return known.Recognize(s.Known, known.Started{
		Command: s.Command.Reveal(), Args: Reveal(s.Args), URL: s.URL.Reveal(),
		Env: slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv), Boxed: s.Confine != nil && s.Confine.Require,
	})
}
