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

// Within reports whether a server is in a scope.
func Within(s Scope, server string) bool { return s == nil || s.Refuses(server) == "" }

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
	view, _ := v.seen.LoadOrStore(key, v.Catalog.View(func(server, tool string) bool { return Within(s, server) && sees(server, tool) }))
	return view.(*catalog.View)
}

// seen is the part of the catalogue that a run may know of.
func seen(r *Run, view *View) *catalog.View { return view.Within(r.Profile, r.host.Scope()) }

// mayKnow reports whether a run may know of a tool, whether or not it exists.
func mayKnow(r *Run, view *View, server, tool string) bool {
	return Within(r.host.Scope(), server) && view.May(r.Profile, server, tool)
}

// mostCalls is how many calls a run may make; 0: nobody said.
func mostCalls(r *Run, view *View) int {
	most := r.gate.mostCalls
	if by := view.Limits(r.Profile).Calls; by != nil && (most == 0 || *by < most) {
		most = *by
	}
	return most
}

// mostOpen is how many open questions the owner of a run may have; 0: any number.
func mostOpen(r *Run) int {
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
