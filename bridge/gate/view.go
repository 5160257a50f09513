package gate

import (
	"sync"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// A View is everything that decisions are based on: one policy and one catalogue,
// which change only together, so that no decision mixes two versions. It is never
// changed, only replaced.
type View struct {
	Profiles *profiles.Set
	Catalog  *catalog.Catalog
	// Trusted reports, by server, whether the person who runs the bridge
	// trusts the server's readOnlyHint.
	Trusted map[string]bool
	// Identities tell servers of the same name apart: for each server, a keyed
	// digest of its command, address, arguments and environment.
	Identities map[string]string
	// Complete reports whether the tools of every enabled server are in the
	// catalogue, whether listed or from the cache.
	Complete bool
	// Awaited are the enabled servers whose tools are not in the catalogue yet.
	Awaited []string
	// Cached are the servers whose tools in the catalogue are those of the last run.
	Cached []string
	// Meanings are what is known of servers, by their configured names.
	Meanings map[string]Meant
	// Box says what the system keeps the program of a server to now; nil: nothing.
	Box func(server string) Box
	// Unreviewed are the tools whose present definition nobody has accepted.
	Unreviewed map[ToolName]UnreviewedTool

	seen      sync.Map // profile name, with the key of a scope if there is one -> *catalog.View
	schemas   sync.Map // tool digest -> *argumentSchema
	described sync.Map // ToolName -> bool: whether its file describes it
}

// A ToolName is the pair that identifies a tool: the configured server, and the raw
// name that the server gives the tool.
type ToolName struct{ Server, Tool string }

// An UnreviewedTool is a tool whose definition changed since a person accepted it,
// or that nobody has accepted at all. Its calls always ask, whatever else would allow
// them, and the server's own annotations do not lower its risk.
type UnreviewedTool struct {
	// Why says which, in our words, without a full stop.
	Why string
	// Quarantined tools are hidden from scripts, and their calls are denied.
	Quarantined bool
	// Was is the definition that was accepted; nil if there is none. Policy judges
	// it and the present one, and the stricter decision counts.
	Was *catalog.Definition
	// Difference is for the person who is asked: lines as a person may see them.
	Difference []string
}

// unreviewed reports whether a tool is unreviewed. Methods that read what a server has
// besides tools have names of our own and never are.
func (v *View) unreviewed(t *catalog.Tool) (UnreviewedTool, bool) {
	if t.Method {
		return UnreviewedTool{}, false
	}
	u, ok := v.Unreviewed[ToolName{t.Server, t.Name}]
	return u, ok
}

func (v *View) box(server string) Box {
	if v.Box == nil {
		return Box{}
	}
	return v.Box(server)
}

// Facts returns what policy may know about a tool, without the facts of a call. An
// unreviewed tool has two, as it is and as it was accepted, and both count.
func (v *View) Facts(t *catalog.Tool) []profiles.Call {
	u, unreviewed := v.unreviewed(t)
	is := profiles.Call{Server: t.Server, Tool: t.Name, Title: t.Title, Description: t.Description, Annotations: t.Annotations,
		Flow: &profiles.FlowFacts{Labels: v.labels(t)}, TrustAnnotations: t.Method || v.Trusted[t.Server] && !unreviewed, Changed: u.Why} // a method's annotations are our own
	if u.Was == nil {
		return []profiles.Call{is}
	}
	was := is
	was.Title, was.Description, was.Annotations = u.Was.Title, u.Was.Description, u.Was.Annotations
	return []profiles.Call{is, was}
}

// Sees returns the part of the catalogue that a profile may see; the empty name
// stands for what binds `eval`. A profile that does not exist sees nothing.
func (v *View) Sees(name string) *catalog.View {
	if known, ok := v.seen.Load(name); ok {
		return known.(*catalog.View)
	}
	view, _ := v.seen.LoadOrStore(name, v.Catalog.View(v.sees(name)))
	return view.(*catalog.View)
}

// sees reports what a profile may see.
func (v *View) sees(name string) func(server, tool string) bool {
	p, ok := v.profile(name)
	return func(server, tool string) bool {
		return ok && !v.Unreviewed[ToolName{server, tool}].Quarantined && p.Sees(server, tool)
	}
}

// ReadOnly reports whether nothing that a profile may call can change anything, as
// far as names and trusted annotations tell. It is false until the tools of every
// server are known.
func (v *View) ReadOnly(name string) bool {
	p, ok := v.profile(name)
	if !ok || !v.Complete || len(v.Sees(name).Servers()) == 0 {
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

// Limits returns a profile's limits for a run, each nil if it sets none.
func (v *View) Limits(name string) profiles.Limits {
	p, ok := v.profile(name)
	if !ok {
		return profiles.Limits{}
	}
	return p.Limits()
}

// May reports whether a profile lets a script see a tool, whether or not it exists.
func (v *View) May(name, server, tool string) bool {
	p, ok := v.profile(name)
	return ok && p.Sees(server, tool)
}

// profile finds a profile by name; the empty name is what binds `eval`.
func (v *View) profile(name string) (*profiles.Profile, bool) {
	return profileOf(v.Profiles, name)
}

// profileOf is View.profile for a policy.
func profileOf(set *profiles.Set, name string) (*profiles.Profile, bool) {
	if name == "" {
		return set.Default(), true
	}
	return set.Profile(name)
}
