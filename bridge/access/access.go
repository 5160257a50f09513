// Package access says who may see and call what. An [Entry] of the configuration names
// people and programs and says what they have: profiles, servers, surface, where their
// questions go, and limits. [New] compiles all entries; [Rules.For] finds the first that
// holds for a principal, which alone counts. Whoever none holds for has nothing. Nil rules
// give everything to everybody: the configuration says nothing of access.
//
// Nothing is remembered of a decision. Whoever lists tools asks, and whoever makes a call
// asks again: in between the configuration may have changed, or somebody's groups.
package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobwas/glob"
)

// An Entry says what some principals have. It holds for a principal that one of its first
// four keys names.
type Entry struct {
	// Principals are globs over names, Groups over groups, and Tokens over the names of
	// the configuration's own tokens.
	Principals []string `json:"principals,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Tokens     []string `json:"tokens,omitempty"`
	// Local is about whoever has no name: over stdio, on the command line, and over HTTP
	// where no token is asked for.
	Local bool `json:"local,omitempty"`

	// Profiles are globs over the profiles that they may use; there is at least one.
	// DefaultProfile is what binds eval for them; without it that is the default profile
	// of all, if they have it, or the only one that they have.
	Profiles       []string `json:"profiles,omitempty"`
	DefaultProfile string   `json:"defaultProfile,omitempty"`
	// Servers, if not nil, are globs over the servers that they reach.
	Servers []string `json:"servers,omitempty"`
	// Surface is SurfaceDefault or SurfaceFull; empty: what the configuration says.
	Surface string `json:"surface,omitempty"`
	// Asked says where their questions go: AskedAnywhere (or empty), AskedApprovers.
	Asked  string `json:"asked,omitempty"`
	Limits Limits `json:"limits,omitzero"`
}

// Limits bound what one principal has at the same time; 0 sets no bound of its own.
type Limits struct {
	Sessions  int `json:"sessions,omitempty" range:"1..100000"`  // of HTTP clients up to protocol 2025-11-25
	Runs      int `json:"runs,omitempty" range:"1..100000"`      // under way, those included that wait for people
	Workers   int `json:"workers,omitempty" range:"1..1024"`     // scripts that run; further ones wait their turn
	Questions int `json:"questions,omitempty" range:"1..100000"` // open ones
}

// The words that keys of an entry take.
const (
	SurfaceDefault = "default"
	SurfaceFull    = "full"

	AskedAnywhere  = "anywhere"  // at the client and by approvers, as profiles say
	AskedApprovers = "approvers" // never at the client
)

// Known is what entries refer to.
type Known struct {
	Profiles []string
	Default  string              // the profile that binds eval; empty: none
	Tokens   map[string][]string // the configuration's own tokens, each with its groups
	Place    func(entry int) string
}

// A Problem is a mistake in an entry, at a JSON pointer from the section.
type Problem struct{ Pointer, Message, Hint string }

// Rules are all entries, compiled. Their methods may be called by any number of goroutines.
type Rules struct {
	entries []rule
	tokens  map[string][]string
}

// A rule is a compiled entry.
type rule struct {
	Entry
	number                                      int // from 1
	place                                       string
	principals, groups, tokens, profiles, reach globs
}

// New compiles entries. If there are problems, the rules are nil.
func New(entries []Entry, known Known) (*Rules, []Problem) {
	r := &Rules{tokens: known.Tokens, entries: []rule{}}
	var problems []Problem
	for i, e := range entries {
		one, wrong := compile(e, known)
		for _, p := range wrong {
			p.Pointer = fmt.Sprintf("/%d%s", i, p.Pointer)
			problems = append(problems, p)
		}
		one.number = i + 1
		if one.place = fmt.Sprintf("entry %d of access", i+1); known.Place != nil {
			one.place += " (" + known.Place(i) + ")"
		}
		r.entries = append(r.entries, one)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return r, nil
}

func compile(e Entry, known Known) (one rule, wrong []Problem) {
	bad := func(pointer, message, hint string) { wrong = append(wrong, Problem{pointer, message, hint}) }
	read := func(key string, texts []string, into *globs) {
		for i, text := range texts {
			g, why, hint := compileGlob(text)
			if why != "" {
				bad(fmt.Sprintf("/%s/%d", key, i), why, hint)
				continue
			}
			*into = append(*into, g)
		}
	}
	one.Entry = e
	read("principals", e.Principals, &one.principals)
	read("groups", e.Groups, &one.groups)
	read("tokens", e.Tokens, &one.tokens)
	read("profiles", e.Profiles, &one.profiles)
	read("servers", e.Servers, &one.reach)
	if len(e.Principals)+len(e.Groups)+len(e.Tokens) == 0 && !e.Local {
		bad("", "the entry names nobody", `add "principals", "groups", "tokens" or "local": true; "principals": ["*"] is everybody who has a name`)
	}
	if len(e.Profiles) == 0 {
		bad("", `the entry has no "profiles"`, `say which: "profiles": ["safe"], or all: ["*"]; whoever is to have nothing needs no entry after the last`)
	}
	for i, text := range e.Profiles {
		if !strings.ContainsAny(text, `*?[]\`) && !slices.Contains(known.Profiles, text) {
			bad(fmt.Sprintf("/profiles/%d", i), fmt.Sprintf("there is no profile %q", text), "there "+are(known.Profiles))
		}
	}
	if d := e.DefaultProfile; d != "" {
		switch _, has := one.profiles.match(d); {
		case !slices.Contains(known.Profiles, d):
			bad("/defaultProfile", fmt.Sprintf("there is no profile %q", d), "there "+are(known.Profiles))
		case !has:
			bad("/defaultProfile", fmt.Sprintf("the entry does not give the profile %q", d), `add it to "profiles"`)
		}
	}
	if !slices.Contains([]string{"", SurfaceDefault, SurfaceFull}, e.Surface) {
		bad("/surface", `"surface" must be "default" or "full"`, "")
	}
	if !slices.Contains([]string{"", AskedAnywhere, AskedApprovers}, e.Asked) {
		bad("/asked", `"asked" must be "anywhere" or "approvers"`, "")
	}
	return one, wrong
}

func are(names []string) string {
	switch len(names) {
	case 0:
		return "are no profiles"
	case 1:
		return "is only " + names[0]
	}
	return "are " + strings.Join(names, ", ")
}

// globs are the patterns of one key.
type globs []pattern

type pattern struct {
	text string
	glob *glob.Pattern
}

// match returns the first pattern that matches a name.
func (g globs) match(name string) (pattern string, ok bool) {
	for _, p := range g {
		if p.glob.Match(name) {
			return p.text, true
		}
	}
	return "", false
}

const (
	maxPattern = 256
	maxStars   = 8
)

// compileGlob compiles one pattern, in which * and ? match any characters. Braces are refused:
// matching them takes exponential time on names that others choose.
func compileGlob(text string) (_ pattern, why, hint string) {
	switch {
	case text == "":
		return pattern{}, "the pattern is empty", `"*" matches every name`
	case len(text) > maxPattern:
		return pattern{}, fmt.Sprintf("the pattern is longer than %d bytes", maxPattern), ""
	case strings.ContainsAny(text, "{}"):
		return pattern{}, "braces are not understood here", "write each alternative as a pattern of its own"
	case strings.Count(text, "*") > maxStars:
		return pattern{}, fmt.Sprintf("the pattern has more than %d stars", maxStars), ""
	}
	g, err := glob.Compile(text)
	if err != nil {
		return pattern{}, "the pattern is not legal: " + err.Error(), `\ before a character takes away its meaning`
	}
	return pattern{text, g}, "", ""
}

// A Rights is what a principal has at one moment.
type Rights struct {
	all   bool  // there are no rules
	rule  *rule // nil: none holds
	who   string
	why   string   // why the rule holds
	asked []string // the groups that counted
	bound string   // the profile of the endpoint or window; empty: none
}

// To binds the rights to the profile of an endpoint or window, if that is not empty: nothing else is
// given there.
func (g Rights) To(profile string) Rights {
	g.bound = profile
	return g
}

// Key is the same for rights that give the same.
func (g Rights) Key() any { return [...]any{g.all, g.rule, g.bound} }

// Full reports whether anybody is shown the full surface.
func (r *Rules) Full() bool {
	return slices.ContainsFunc(r.all(), func(e rule) bool { return e.Surface == SurfaceFull })
}

// For returns what a principal has. The groups of one who came with a token of the configuration
// are those that the configuration says.
func (r *Rules) For(name string, groups []string) Rights {
	if r == nil {
		return Rights{all: true, who: name}
	}
	own, isToken := r.tokens[name]
	if isToken && name != "" {
		groups = own
	}
	g := Rights{who: name, asked: groups}
	for i := range r.entries {
		if why := r.entries[i].holds(name, groups, isToken); why != "" {
			g.rule, g.why = &r.entries[i], why
			break
		}
	}
	return g
}

// holds says why the rule is about a principal; empty if it is not.
func (e *rule) holds(name string, groups []string, token bool) string {
	if name == "" {
		if e.Local {
			return `"local": true`
		}
		return "" // and without a name nobody has groups
	}
	if p, ok := e.principals.match(name); ok {
		return fmt.Sprintf("principal %q", p)
	}
	if p, ok := e.tokens.match(name); ok && token {
		return fmt.Sprintf("token %q", p)
	}
	for _, group := range groups {
		if p, ok := e.groups.match(group); ok {
			return fmt.Sprintf("group %q", p)
		}
	}
	return ""
}

// Everything reports whether nothing is said of access.
func (g Rights) Everything() bool { return g.all }

// Limits are the principal's.
func (g Rights) Limits() Limits {
	if g.rule == nil {
		return Limits{}
	}
	return g.rule.Limits
}

// Full reports whether the principal is shown the full surface, where the configuration says
// otherwise for all.
func (g Rights) Full(otherwise bool) bool {
	if g.rule == nil || g.rule.Surface == "" {
		return otherwise
	}
	return g.rule.Surface == SurfaceFull
}

// Asked says where the principal's questions go.
func (g Rights) Asked() string {
	if g.rule == nil || g.rule.Asked == "" {
		return AskedAnywhere
	}
	return g.rule.Asked
}

// Profile reports whether the principal may use a profile. The empty name stands for eval with
// no profile at all, which only a pattern for all profiles gives.
func (g Rights) Profile(name string) bool {
	if g.bound != "" && name != g.bound {
		return false
	}
	if g.rule == nil {
		return g.all
	}
	_, ok := g.rule.profiles.match(name)
	return ok
}

// Server reports whether the principal reaches a server.
func (g Rights) Server(name string) bool {
	if g.rule == nil || g.rule.Servers == nil {
		return g.all || g.rule != nil
	}
	_, ok := g.rule.reach.match(name)
	return ok
}

// Refuses says why the principal may not do anything at a server under a profile; empty if they
// may. The empty server stands for the functions of the bridge itself, and the empty profile
// for none.
func (g Rights) Refuses(profile, server string) string {
	switch {
	case g.bound != "" && profile != g.bound:
		return fmt.Sprintf("this endpoint is for the profile %s alone", g.bound)
	case g.all:
		return ""
	case g.rule == nil:
		return fmt.Sprintf("no entry of access holds for %s", g.name())
	case !g.Profile(profile) && profile == "":
		return fmt.Sprintf("%s gives %s no eval without a profile", g.rule.place, g.name())
	case !g.Profile(profile):
		return fmt.Sprintf("%s does not give %s the profile %s", g.rule.place, g.name(), profile)
	case server != "" && !g.Server(server):
		return fmt.Sprintf("%s does not let %s reach server %s", g.rule.place, g.name(), server)
	}
	return ""
}

// name is the principal in words.
func (g Rights) name() string {
	if g.who == "" {
		return "whoever has no name (local)"
	}
	return g.who
}

// Entry says where the entry stands that holds, for messages about it; empty if none does.
func (g Rights) Entry() string {
	if g.rule == nil {
		return ""
	}
	return g.rule.place
}

// TooMany says that a limit of the principal is reached, and what to do.
func (g Rights) TooMany(has int, what, todo string) error {
	return fmt.Errorf("%s has %d %s, and %s allows no more: %s", g.name(), has, what, g.Entry(), todo)
}
