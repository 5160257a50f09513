package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/tsdecl"
	"codemode-bridge/profiles"
)

// A Definition is one tool as an upstream lists it, unchanged: texts may hold
// anything at all. What this package writes for a model is cleaned.
type Definition struct {
	Name        string
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments
	Output      json.RawMessage // JSON Schema of structuredContent; nil if undeclared
	Annotations profiles.Annotations
}

// A Server is one upstream and all of its tools.
type Server struct {
	// Name is the configured name. The empty name is the bridge's own: Build
	// ignores a server without a name.
	Name  string
	Tools []Definition
	// Stale marks a list that comes from the cache of the last run and that
	// the server has not confirmed yet.
	Stale bool
}

// A Tool is one tool of a Catalog. It must not be modified.
type Tool struct {
	Definition
	// Server is the configured name of the server, "" for a discovery function.
	Server string
	// Script is the tool's name in scripts: a legal identifier of at most
	// MaxName bytes that no other tool of the catalogue has.
	Script string
	// Digest is that of the definition: "sha256:" and 64 hex digits. The order
	// of keys and the white space of the schemas make no difference; any other
	// change does.
	Digest string
	// Stale is that of the Server.
	Stale bool

	path string
}

// Path is the configured server's name, "__" and the tool's raw name: what
// policy matches, and the other name that scripts may use,
// codemode["server__tool"]. The path of a discovery function is its name.
func (t *Tool) Path() string { return t.path }

// Characters of a description in a list of tools.
const maxSummary = 160

// Summary is the beginning of the tool's description, or else its title,
// cleaned and on one line.
func (t *Tool) Summary() string {
	if s := tsdecl.Plain(t.Description, maxSummary); s != "" {
		return s
	}
	return tsdecl.Plain(t.Title, maxSummary)
}

// Declaration is the tool's short TypeScript declaration, on one line.
func (t *Tool) Declaration() string {
	return tsdecl.Func(t.Script, t.Input, t.Output, tsdecl.Options{})
}

// Schema is the tool's long TypeScript declaration, with JSDoc.
func (t *Tool) Schema() string {
	text := t.Description
	if text == "" {
		text = t.Title
	}
	if t.Stale {
		text = "[From the last run: the server has not listed this tool again yet.]\n" + text
	}
	return tsdecl.Func(t.Script, t.Input, t.Output, tsdecl.Options{Doc: true, Description: text})
}

// A Catalog is an immutable snapshot of all tools. Its methods may be called
// concurrently.
type Catalog struct {
	revision string
	tools    []*Tool          // by server and raw name, so the discovery functions come first
	own      int              // how many of tools are discovery functions
	byName   map[string]*Tool // by Script, and by Path where one tool has it
	index    func() *index    // of the tools after the first own
	all      func() *visible  // the view of everything
}

// Build makes the catalogue of these servers. The order of servers and tools
// makes no difference. Of two tools with the same server and raw name, which
// nothing could tell apart in a call, one is kept, the same one each time.
func Build(servers []Server) *Catalog {
	c := &Catalog{}
	for _, d := range discovery {
		c.tools = append(c.tools, &Tool{Definition: d, Digest: digest(d), path: d.Name})
	}
	c.own = len(c.tools)
	for _, s := range servers {
		if s.Name == "" {
			continue
		}
		for _, d := range s.Tools {
			c.tools = append(c.tools, &Tool{
				Definition: d, Server: s.Name, Stale: s.Stale,
				Digest: digest(d), path: s.Name + "__" + d.Name,
			})
		}
	}
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
	c.byName = nameTools(c.tools)

	h := sha256.New()
	h.Write([]byte("catalog 1\n"))
	for _, t := range c.tools {
		h.Write([]byte(t.Script + " " + t.Digest + "\n"))
	}
	c.revision = "sha256:" + hex.EncodeToString(h.Sum(nil))

	c.index = sync.OnceValue(func() *index { return newIndex(c.tools[c.own:]) })
	c.all = sync.OnceValue(func() *visible { return look(c, func(string, string) bool { return true }) })
	return c
}

// Revision changes whenever a tool comes, goes, or is defined differently.
// Whether a list is Stale makes no difference.
func (c *Catalog) Revision() string { return c.revision }

// Tools are all tools, the discovery functions first, then by server and raw
// name. Not to be modified.
func (c *Catalog) Tools() []*Tool { return c.tools }

// Lookup finds a tool by its Script name or its Path.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Near gives at most n script names that resemble name, best first.
func (c *Catalog) Near(name string, n int) []string { return c.View(nil).Near(name, n) }
