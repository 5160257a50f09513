package catalog

import (
	"encoding/json"
	"sort"
	"sync"

	"codemode-bridge/profiles"
)

// A Definition is one tool as an upstream lists it, unchanged: texts may hold
// anything at all. What this package writes for a model or a person is cleaned.
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
	// Name is the configured name. The empty name is the bridge's own and is
	// ignored in what is given to Build.
	Name  string
	Tools []Definition
	// Stale marks a list that comes from the cache of the last run and that
	// the server has not confirmed yet.
	Stale bool
}

// A Tool is one tool of a Catalog. It is never changed.
type Tool struct {
	Definition
	// Server is the configured name of the server, "" for a discovery function.
	Server string
	// Script is the tool's name in scripts: a legal identifier of at most
	// MaxName bytes that no other tool of the catalogue has.
	Script string
	// Digest is that of the definition: "sha256:" and 64 hex digits. The order
	// of keys and white space inside the schemas make no difference; any other
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

// A Catalog is an immutable snapshot of all tools. Its methods may be called
// concurrently.
type Catalog struct {
	revision string
	tools    []*Tool          // sorted by server, then raw name; discovery functions first
	byName   map[string]*Tool // by Script and by Path
	servers  []Server         // as given, sorted, for Save

	index func() *index // made on first search
}

// Build makes the catalogue of these servers. The order of servers and tools
// makes no difference.
func Build(servers []Server) *Catalog {
	c := &Catalog{byName: map[string]*Tool{}}
	c.index = sync.OnceValue(func() *index { return newIndex(c.tools) })
	return c
}

// Revision changes whenever a tool comes, goes, or is defined differently.
// Whether a list is Stale makes no difference.
func (c *Catalog) Revision() string { return c.revision }

// Tools are all tools, sorted by server and raw name. Not to be modified.
func (c *Catalog) Tools() []*Tool { return c.tools }

// Lookup finds a tool by its Script name or its Path.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Near gives at most n script names that resemble name, best first.
func (c *Catalog) Near(name string, n int) []string {
	return c.View(nil).Near(name, n)
}

// View is the part of the catalogue that sees lets through; nil lets all
// through. sees must be a pure function of its arguments; it is called once a
// tool, when the view is first used.
func (c *Catalog) View(sees func(server, tool string) bool) *View {
	return &View{catalog: c}
}

type index struct{}

func newIndex([]*Tool) *index { return &index{} }

// A View is what one profile may know of a Catalog. Its methods may be called
// concurrently.
type View struct{ catalog *Catalog }

// A ServerCount is a server and how many of its tools a view shows.
type ServerCount struct {
	Server string `json:"server"`
	Tools  int    `json:"tools"`
}

// An Entry is what the discovery functions say of one tool.
type Entry struct {
	Name        string   `json:"name"`
	Summary     string   `json:"summary,omitempty"`
	Declaration string   `json:"declaration,omitempty"`
	Stale       bool     `json:"stale,omitempty"`
	Unmatched   []string `json:"unmatched,omitempty"`
}

// A SearchQuery is what View.Search looks for.
type SearchQuery struct {
	Query  string
	Server string // "" means all
	Limit  int    // 0 means DefaultLimit
}

// A SearchResult is the answer of View.Search.
type SearchResult struct {
	Tools     []Entry  // best first
	Unmatched []string // words of the query that no visible tool matches
	More      int      // tools that fit but are beyond the limit
}

// A PageQuery says which page View.Page gives.
type PageQuery struct {
	Server string
	Cursor string
	Limit  int
}

// A PageResult is one page of tools.
type PageResult struct {
	Servers []ServerCount `json:"servers,omitempty"`
	Tools   []Entry       `json:"tools"`
	Total   int           `json:"total"`
	Next    string        `json:"next,omitempty"`
}

// Names are the names that scripts may use, sorted: script names, paths that
// differ from them, and the discovery functions. Not to be modified.
func (v *View) Names() []string { return nil }

// Servers are the servers with at least one visible tool, sorted by name.
func (v *View) Servers() []ServerCount { return nil }

// Search finds tools by keywords.
func (v *View) Search(q SearchQuery) SearchResult { return SearchResult{} }

// Page lists tools, page by page.
func (v *View) Page(q PageQuery) (PageResult, error) { return PageResult{}, nil }

// Declare gives the long declaration of one tool, by Script name or Path.
// The error is an *UnknownError.
func (v *View) Declare(name string) (string, error) { return "", nil }

// Near gives at most n visible script names that resemble name, best first.
func (v *View) Near(name string, n int) []string { return nil }

// Describe writes the line that lists the servers, in at most limit bytes.
func (v *View) Describe(limit int) string { return "" }

// Declarations gives the short declarations of all visible tools, one a line,
// if they fit in limit bytes.
func (v *View) Declarations(limit int) (string, bool) { return "", false }

// Discover answers the discovery functions.
func Discover(v *View, function string, args json.RawMessage) (json.RawMessage, error) {
	return nil, nil
}

// Save writes the catalogue's servers to the cache folder.
func (c *Catalog) Save(dir string) error { return nil }

// Load reads what Save wrote. All servers are Stale.
func Load(dir string) ([]Server, error) { return nil, nil }

var _ = sort.Strings
