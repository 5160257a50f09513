package gate

import (
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// A Scope is the part of the servers that somebody reaches, by who they are: what a
// profile allows is for them only within it. Nil is all of them.
type Scope interface {
	// Key is the same for scopes of the same servers.
	Key() string
	// Refuses says why a server is out of reach; empty if it is not. The empty server
	// stands for the functions of the bridge itself.
	Refuses(server string) string
	// Questions is how many open questions its owner may have; 0: any number.
	Questions() int
}

// within reports whether a server is in a scope.
func within(s Scope, server string) bool { return s == nil || s.Refuses(server) == "" }

// Within is Sees as far as a scope reaches.
func (v *View) Within(profile string, s Scope) *catalog.View {
	if s == nil || s.Key() == "" {
		return v.Sees(profile)
	}
	key := profile + "\x00" + s.Key()
	if known, ok := v.seen.Load(key); ok {
		return known.(*catalog.View)
	}
	sees := v.sees(profile)
	view, _ := v.seen.LoadOrStore(key, v.Catalog.View(func(server, tool string) bool { return within(s, server) && sees(server, tool) }))
	return view.(*catalog.View)
}

// Sees is the part of the catalogue that the run may know of.
func (r *Run) Sees(view *View) *catalog.View { return view.Within(r.Profile, r.host.Scope()) }

// May reports whether the script may know of a tool, whether or not it exists.
func (r *Run) May(view *View, server, tool string) bool {
	return within(r.host.Scope(), server) && view.May(r.Profile, server, tool)
}

// mostOpen is how many open questions the owner of the run may have; 0: any number.
func (r *Run) mostOpen() int {
	if s := r.host.Scope(); s != nil {
		return s.Questions()
	}
	return 0
}

// outOfScope returns the decision on a tool that is out of reach.
func outOfScope(why string, d profiles.Decision) profiles.Decision {
	return profiles.Decision{Disposition: profiles.Deny, Risk: d.Risk, Profile: d.Profile, Revision: d.Revision,
		Reasons: []profiles.Reason{{Kind: profiles.KindAccess, Disposition: profiles.Deny, Detail: why}}}
}
