package known

import (
	"fmt"
	"strings"
)

// A Recognition says what is known of a configured server, and whether that was
// accepted for it.
type Recognition struct {
	// Match is the file that describes the server by the way it is started; its
	// Server has no name if none does.
	Match
	// Said is the file that the configuration says the server is known by, as
	// "filesystem" or "filesystem@2026.8.31"; empty if it does not say.
	Said string
	// Accepted reports whether what is known may loosen decisions. Without that it
	// only makes them stricter.
	Accepted bool
	// Why says why what Said names is not accepted; where nothing is said, what is
	// different about a server that is started nearly as a known one. It is empty
	// if there is nothing to say.
	Why string
}

// Recognize compares a server that is started so with the file that the person has
// accepted for it. A version in said must be both the one that is started and the one
// that the file was verified with: another release of the bridge, or of the server, is
// not what was accepted. Without a version, the file as it is now holds for every
// version of the server.
func Recognize(said string, s Started) Recognition {
	r := Recognition{Said: said}
	r.Match, r.Why = Identify(s)
	if said == "" {
		return r
	}
	name, version, _ := strings.Cut(said, "@")
	is := r.Server.Name
	switch {
	case is != "" && is != name:
		r.Why = "it is started like " + is
	case is == "" && r.Why == "":
		r.Why = "it is not started in a way in which " + name + " is known"
	case is == "":
	case r.Server.Verified == "":
		r.Why = "what is known of it comes from its documentation and nobody has verified it, so it only makes decisions stricter"
	case !r.Verified:
		r.Why = "what is known was verified for its package, not for what is started here, so it only makes decisions stricter"
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
