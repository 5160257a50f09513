package gate

import (
	"sync"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// A View is all that is decided on: one policy and one catalogue, which
// change only together, so that no decision mixes two versions. It is never
// changed, only replaced.
type View struct {
	Profiles *profiles.Set
	Catalog  *catalog.Catalog
	// Trusted reports, by server, that the person who runs the bridge
	// believes the server's readOnlyHint.
	Trusted map[string]bool
	// Identities say, by server, what the server is beside its name: a keyed
	// digest of its command, address, arguments and environment.
	Identities map[string]string
	// Known reports that the tools of every enabled server are in the
	// catalogue, be it from the last run.
	Known bool
	// Unreviewed are the tools whose definition nobody has accepted as it is.
	Unreviewed map[ToolName]UnreviewedTool

	seen    sync.Map // profile name -> *catalog.View
	schemas sync.Map // tool digest -> *argumentSchema
}

// A ToolName is the pair that names a tool: the configured server and the raw
// name that it gives the tool.
type ToolName struct{ Server, Tool string }

// An UnreviewedTool is a tool that is not as a person last accepted it, or that nobody
// has accepted at all. A call of it is asked, whatever would allow it, and what
// the server says of it lowers no risk.
type UnreviewedTool struct {
	// Why says so in our words, without a full stop.
	Why string
	// Quarantined tools are hidden from scripts, and their calls are denied.
	Quarantined bool
	// Was is the definition that was accepted; nil if there is none. The
	// stricter of what policy says of it and of the present one counts.
	Was *catalog.Definition
	// Difference is for the person who is asked: lines as a person may see them.
	Difference []string
}

// held finds out whether a tool is held; what is read of a server beside its
// tools has names of our own and never is.
func (v *View) held(t *catalog.Tool) (UnreviewedTool, bool) {
	if t.Method {
		return UnreviewedTool{}, false
	}
	h, ok := v.Unreviewed[ToolName{t.Server, t.Name}]
	return h, ok
}

// Facts are what policy may know of a tool, but for the call's own: of a tool
// that is held there are two, as it is and as it was accepted, and both count.
func (v *View) Facts(t *catalog.Tool) []profiles.Call {
	h, held := v.held(t)
	is := profiles.Call{Server: t.Server, Tool: t.Name, Title: t.Title, Description: t.Description, Annotations: t.Annotations,
		TrustAnnotations: t.Method || v.Trusted[t.Server] && !held, Changed: h.Why} // what is said of a method is ours
	if h.Was == nil {
		return []profiles.Call{is}
	}
	was := is
	was.Title, was.Description, was.Annotations = h.Was.Title, h.Was.Description, h.Was.Annotations
	return []profiles.Call{is, was}
}

// Sees returns the part of the catalogue that a profile may know of; the
// empty name stands for what binds `eval`. A profile that is not there sees
// nothing.
func (v *View) Sees(name string) *catalog.View {
	if known, ok := v.seen.Load(name); ok {
		return known.(*catalog.View)
	}
	sees := func(string, string) bool { return false }
	if p, ok := v.profile(name); ok {
		sees = func(server, tool string) bool {
			return !v.Unreviewed[ToolName{server, tool}].Quarantined && p.Sees(server, tool)
		}
	}
	view, _ := v.seen.LoadOrStore(name, v.Catalog.View(sees))
	return view.(*catalog.View)
}

// ReadOnly reports whether nothing that a profile may call can change
// anything, as far as names and trusted annotations tell. As long as some
// server's tools are not known, nobody can tell.
func (v *View) ReadOnly(name string) bool {
	p, ok := v.profile(name)
	if !ok || !v.Known || len(v.Sees(name).Servers()) == 0 {
		return false
	}
	facts := make([]profiles.ToolFacts, 0, len(v.Catalog.Tools()))
	for _, t := range v.Catalog.Tools() {
		if v.Unreviewed[ToolName{t.Server, t.Name}].Quarantined {
			continue
		}
		for _, f := range v.Facts(t) {
			facts = append(facts, profiles.ToolFacts{
				Server: f.Server, Tool: f.Tool, Title: f.Title, Description: f.Description,
				Annotations: f.Annotations, TrustAnnotations: f.TrustAnnotations, Input: t.Input,
			})
		}
	}
	return p.ReadOnly(facts)
}

// Limits are what a profile allows a run, each nil where it says nothing.
func (v *View) Limits(name string) profiles.Limits {
	p, ok := v.profile(name)
	if !ok {
		return profiles.Limits{}
	}
	return p.Limits()
}

// May reports whether a profile lets a script know of a tool, be it there or not.
func (v *View) May(name, server, tool string) bool {
	p, ok := v.profile(name)
	return ok && p.Sees(server, tool)
}

// profile finds a profile by name; the empty name is what binds `eval`.
func (v *View) profile(name string) (*profiles.Profile, bool) {
	return profileOf(v.Profiles, name)
}

// profileOf is View.profile of a policy.
func profileOf(set *profiles.Set, name string) (*profiles.Profile, bool) {
	if name == "" {
		return set.Default(), true
	}
	return set.Profile(name)
}
