package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/tsdecl"
)

// An Observation is what the past answers of a tool without an output schema
// were like. It holds types, and is for a model to read.
type Observation struct {
	Answer string // the TypeScript type of the answer; "" for string
	Remark string // what else there is to say about it; "" for nothing
}

// Sources are what a catalogue is made of.
type Sources struct {
	Servers []Server
	Scripts []Script
	// Order has the names of all servers of the configuration, in its order, those
	// too that are off or have not listed their tools. Script names depend on it and
	// not on Servers, so no server's names change because another one connects.
	// Servers that are not in it come after the others, by name.
	Order []string
	// Kept are the script names that tools keep, whatever else there is: those that
	// were written down when the tools first got them. It decides before Order does.
	// What is no legal name, what another tool keeps already, and the tools of servers
	// that are not configured count as absent. It may be nil.
	Kept   map[ToolRef]string
	Absent []Absent // servers whose tools are not known
	// Observed, if not nil, tells of a tool's past answers in about limit
	// bytes. It is asked whenever a declaration is shown by a discovery
	// function, and may be called concurrently: this is the one thing that
	// changes within a Catalog.
	Observed func(t *Tool, limit int) Observation
}

// A Catalog is an immutable snapshot of all tools. Its methods may be called
// concurrently.
type Catalog struct {
	revision string
	tools    []*Tool          // by server and raw name, so the discovery functions come first
	own      int              // how many of tools are discovery functions
	listed   []*Tool          // what lists and searches show: tools[own:], then saved scripts by name
	byName   map[string]*Tool // by Script, and by Path where that is no other tool's; no saved scripts
	byRef    map[ToolRef]*Tool
	naming   *naming
	spelled  func() spellings
	saved    map[string]*Tool // by name
	absent   []Absent         // by name
	offers   []offer          // by server: those that have anything besides tools
	observed func(t *Tool, limit int) Observation
	index    func() *index   // of listed
	all      func() *visible // the view of everything
}

// An offer is what a server has besides tools.
type offer struct {
	server             string
	resources, prompts bool
}

// SameOffers reports whether the servers of both catalogues have the same besides their
// tools, which Revision does not tell.
func (c *Catalog) SameOffers(other *Catalog) bool { return slices.Equal(c.offers, other.offers) }

// Build makes the catalogue of these servers alone.
func Build(servers []Server) *Catalog { return Sources{Servers: servers}.Build() }

// Build makes the catalogue. The order of Servers, their tools and Scripts makes no
// difference. Of two tools with the same server and raw name, which nothing
// could tell apart in a call, one is kept, the same one each time; likewise of two
// scripts with the same name.
func (from Sources) Build() *Catalog {
	c := &Catalog{observed: from.Observed, absent: sortAbsent(from.Absent), saved: make(map[string]*Tool, len(from.Scripts))}
	for _, d := range discovery {
		c.tools = append(c.tools, &Tool{Definition: d, Digest: d.Digest(), path: d.Name})
	}
	c.own = len(c.tools)
	for _, s := range from.Servers {
		if s.Name == "" {
			continue
		}
		if s.Resources || s.Prompts {
			c.offers = append(c.offers, offer{s.Name, s.Resources, s.Prompts})
		}
		for _, d := range s.Tools {
			c.tools = append(c.tools, &Tool{
				Definition: d, Server: s.Name, Stale: s.Stale, Unread: s.Unread[d.Name],
				Digest: d.Digest(), path: s.Name + "__" + d.Name, deprecated: deprecated(d),
			})
		}
	}
	slices.SortFunc(c.offers, func(a, b offer) int { return strings.Compare(a.server, b.server) })
	slices.SortFunc(c.tools, func(a, b *Tool) int {
		if o := cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest)); o != 0 {
			return o
		}
		if a.Stale != b.Stale && b.Stale {
			return -1
		}
		return 0
	})
	c.tools = slices.CompactFunc(c.tools, func(a, b *Tool) bool {
		return a.Server == b.Server && a.Name == b.Name
	})
	c.nameTools(from)
	c.listed = append(slices.Clone(c.tools[c.own:]), c.saveScripts(from.Scripts)...)

	h := sha256.New()
	h.Write([]byte("catalog 1\n"))
	for _, list := range [][]*Tool{c.tools[:c.own], c.listed} {
		for _, t := range list {
			h.Write([]byte(t.Script + " " + t.Digest + "\n"))
			if t.Unread != "" {
				h.Write([]byte(t.Unread + "\n"))
			}
			if t.broken() { // which a script may turn out to be after it was first listed
				h.Write([]byte(t.Saved.Problem + "\n"))
			}
		}
	}
	c.revision = "sha256:" + hex.EncodeToString(h.Sum(nil))

	c.spelled = sync.OnceValue(func() spellings { return readSpellings(c) })
	c.index = sync.OnceValue(func() *index { return newIndex(c.listed) })
	c.all = sync.OnceValue(func() *visible { return look(c, func(string, string) bool { return true }) })
	return c
}

// saveScripts adds the saved scripts and returns them sorted by name.
func (c *Catalog) saveScripts(scripts []Script) []*Tool {
	var list []*Tool
	for _, s := range scripts {
		t := &Tool{Script: `run("` + s.Name + `")`, Digest: s.Digest, Saved: &s}
		t.Definition = Definition{Name: s.Name, Description: s.Description, Input: s.Input, Output: s.Output}
		if s.Problem != "" {
			t.Definition = Definition{Name: s.Name, Description: "[broken, can't be run: " + s.Problem + "] " + s.Description}
		}
		t.path = t.Script
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Tool) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest))
	})
	list = slices.CompactFunc(list, func(a, b *Tool) bool { return a.Name == b.Name })
	for _, t := range list {
		c.saved[t.Name] = t
	}
	return list
}

// Revision changes whenever a tool or saved script comes, goes or is defined
// differently, and when what is said of it as Unread or as broken changes. Whether
// a list is Stale, and which servers are Absent, makes no difference.
func (c *Catalog) Revision() string { return c.revision }

// Tools are all tools, the discovery functions first, then by server and raw
// name; saved scripts are not among them. Not to be modified.
func (c *Catalog) Tools() []*Tool { return c.tools }

// Saved finds a saved script by its name.
func (c *Catalog) Saved(name string) (*Tool, bool) {
	t, ok := c.saved[name]
	return t, ok
}

// show writes a declaration for a discovery function, with what was observed if no
// output is declared.
func (c *Catalog) show(t *Tool, o tsdecl.Options) string {
	if c.observed != nil && len(t.Output) == 0 && t.Server != "" {
		limit := shortRemark
		if o.Doc {
			limit = longRemark
		}
		seen := c.observed(t, limit)
		o.Answer, o.Remark = seen.Answer, seen.Remark
	}
	return t.declare(o)
}

// Bytes of an observation in a short and in a long declaration.
const (
	shortRemark = 700
	longRemark  = 4000
)

// nameTools gives the tools their script names, and makes the maps that find them.
func (c *Catalog) nameTools(from Sources) {
	order := make([]string, 0, len(from.Order))
	add := func(s string) {
		if s != "" && !slices.Contains(order, s) {
			order = append(order, s)
		}
	}
	for _, s := range from.Order {
		add(s)
	}
	for _, t := range c.tools[c.own:] { // which are sorted
		add(t.Server)
	}
	c.naming = newNaming(order, from.Kept)
	c.byName, c.byRef = make(map[string]*Tool, len(c.tools)), make(map[ToolRef]*Tool, len(c.tools))
	for _, t := range c.tools[:c.own] {
		t.Script = t.Name
	}
	for rest := c.tools[c.own:]; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Server == rest[0].Server {
			n++
		}
		c.naming.name(rest[:n])
		rest = rest[n:]
	}
	paths := make(map[string]int, len(c.tools))
	for _, t := range c.tools {
		c.byName[t.Script], c.byRef[t.Ref()] = t, t
		paths[t.path]++
	}
	for _, t := range c.tools {
		if paths[t.path] == 1 && c.byName[t.path] == nil && !Reserved(t.path) && !c.naming.lent(t.Server) {
			c.byName[t.path] = t
		}
	}
}

// Lookup finds a tool by its Script name, or else by its Path, exactly as they are
// written. Resolve finds more.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Tool finds a tool by what policy calls it.
func (c *Catalog) Tool(ref ToolRef) (*Tool, bool) {
	t, ok := c.byRef[ref]
	return t, ok
}

// Prefix is what the script names of a server's tools begin with, before "__".
func (c *Catalog) Prefix(server string) string {
	if prefix, ok := c.naming.prefix[server]; ok {
		return prefix
	}
	return identifier(server)
}

// Near gives at most n script names that resemble name, best first.
func (c *Catalog) Near(name string, n int) []string { return c.View(nil).Near(name, n) }
