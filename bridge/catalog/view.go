package catalog

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/tsdecl"
)

// A View is what one profile may know of a Catalog: what is hidden appears in
// no list, count, search or suggestion. Its methods may be called
// concurrently.
type View struct {
	catalog *Catalog
	seen    func() *visible
}

// visible is what a view shows. It is made once, on first use.
type visible struct {
	let     []bool  // by place in the index
	listed  []*Tool // tools without discovery functions, then saved scripts
	names   []string
	servers []ServerCount
	absent  []Absent

	resources, prompts bool // some server has them
}

// View is the part of the catalogue that sees lets through; nil lets all
// through. sees must be a pure function that may be called concurrently. It is
// called once a tool, when the view is first used, with "" as the server of the
// discovery functions, once for each absent server, with "" as the tool, and for what
// servers offer besides tools with the method that reads it. It is not asked about saved scripts, which any view shows:
// what a script calls is judged when it calls it.
func (c *Catalog) View(sees func(server, tool string) bool) *View {
	if sees == nil {
		return &View{c, c.all}
	}
	return &View{c, sync.OnceValue(func() *visible { return look(c, sees) })}
}

func look(c *Catalog, sees func(server, tool string) bool) *visible {
	v := &visible{let: make([]bool, len(c.listed))}
	for i, t := range c.tools {
		if !sees(t.Server, t.Name) {
			continue
		}
		v.names = append(v.names, t.Script)
		if t.Server == "" {
			continue
		}
		v.let[i-c.own] = true
		v.listed = append(v.listed, t)
		if n := len(v.servers); n > 0 && v.servers[n-1].Server == t.Server {
			v.servers[n-1].Tools++
		} else {
			v.servers = append(v.servers, ServerCount{t.Server, 1})
		}
	}
	slices.Sort(v.names)
	for i := len(c.tools) - c.own; i < len(c.listed); i++ {
		v.let[i] = true
		v.listed = append(v.listed, c.listed[i])
	}
	for _, a := range c.absent {
		if sees(a.Server, "") {
			v.absent = append(v.absent, a)
		}
	}
	for _, o := range c.offers {
		v.resources = v.resources || o.resources && sees(o.server, ReadResource)
		v.prompts = v.prompts || o.prompts && sees(o.server, GetPrompt)
	}
	return v
}

// A ServerCount is a server and how many of its tools a view shows.
type ServerCount struct {
	Server string `json:"server"`
	Tools  int    `json:"tools"`
}

// Revision is that of the catalogue.
func (v *View) Revision() string { return v.catalog.revision }

// Names are the script names of the tools and of the discovery functions, sorted. Not to
// be modified.
func (v *View) Names() []string { return v.seen().names }

// Servers are the servers with at least one visible tool, sorted by name. Not to
// be modified.
func (v *View) Servers() []ServerCount { return v.seen().servers }

// Prefixes are what the script names of these servers' tools begin with, in the same
// order: codemode.prefix.tool is another way to write codemode.prefix__tool.
func (v *View) Prefixes() []string {
	var all []string
	for _, s := range v.seen().servers {
		all = append(all, v.catalog.Prefix(s.Server))
	}
	return all
}

// Offers reports whether any server that a script may ask for them has resources, or
// prompts.
func (v *View) Offers() (resources, prompts bool) {
	seen := v.seen()
	return seen.resources, seen.prompts
}

// An Item is what the discovery functions say of one tool or saved script.
type Item struct {
	Name        string   `json:"name"` // the script name; run("name") of a saved script
	Summary     string   `json:"summary"`
	Declaration string   `json:"declaration,omitempty"`
	Unmatched   []string `json:"unmatched,omitempty"` // words of the query that the tool doesn't have
}

// entry describes t, with its declaration if that is asked for and t can be called
// at all.
func (c *Catalog) entry(t *Tool, declare bool) Item {
	e := Item{Name: t.Script, Summary: t.Summary()}
	if declare && !t.broken() {
		e.Declaration = c.show(t, tsdecl.Options{})
	}
	return e
}

const (
	defaultPage = 40
	maxPage     = 200
)

// A PageQuery says which page View.Page gives.
type PageQuery struct {
	Server string // "" means all
	Cursor string // "" means the first page, else PageResult.Next of the page before
	Limit  int    // tools a page; 0 means 40; at most 200
}

// A PageResult is one page of tools, by server and name.
type PageResult struct {
	Servers []ServerCount `json:"servers,omitempty"` // on the first page of all servers
	Tools   []Item        `json:"tools"`
	Total   int           `json:"total"`          // on all pages
	Next    string        `json:"next,omitempty"` // the cursor of the next page, if there is one
}

// A CursorError says that a cursor can't be used: it was not made by
// View.Page, or for another server, or the tools have changed since. The way on
// is to start again without a cursor.
type CursorError struct{ Reason string }

func (e *CursorError) Error() string {
	return "cursor " + e.Reason + ": start again without a cursor"
}

// Page lists the visible tools, and after them the saved scripts. The error is a *CursorError.
//
// A cursor holds the catalogue's revision and the place of the last tool. It is
// no secret and needs none: a forged one names a place in the same list.
func (v *View) Page(q PageQuery) (PageResult, error) {
	seen, c := v.seen(), v.catalog
	after := -1
	if q.Cursor != "" {
		var err error
		if after, err = c.readCursor(q.Cursor, q.Server); err != nil {
			return PageResult{}, err
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)

	r := PageResult{Tools: []Item{}}
	for _, t := range seen.listed {
		if q.Server == "" || t.Server == q.Server {
			r.Total++
		}
	}
	if q.Server == "" && q.Cursor == "" {
		r.Servers = seen.servers
	}
	last := -1
	for i, t := range c.listed {
		if i <= after || !seen.let[i] || q.Server != "" && t.Server != q.Server {
			continue
		}
		if len(r.Tools) == limit {
			r.Next = c.cursor(last, q.Server)
			break
		}
		r.Tools = append(r.Tools, c.entry(t, r.Total <= maxDeclared))
		last = i
	}
	return r, nil
}

func (c *Catalog) cursor(last int, server string) string {
	raw := append(c.seal(server), binary.AppendUvarint(nil, uint64(last))...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *Catalog) readCursor(cursor, server string) (int, error) {
	if len(cursor) > 64 {
		return 0, &CursorError{"is not one that get_tools gave"}
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 11 {
		return 0, &CursorError{"is not one that get_tools gave"}
	}
	seal := c.seal(server)
	if string(raw[:6]) != string(seal[:6]) {
		return 0, &CursorError{"belongs to an older list of tools"}
	}
	if string(raw[6:10]) != string(seal[6:]) {
		return 0, &CursorError{"was given for another server"}
	}
	last, n := binary.Uvarint(raw[10:])
	if n <= 0 || n != len(raw)-10 || last >= uint64(len(c.listed)) {
		return 0, &CursorError{"is not one that get_tools gave"}
	}
	return int(last), nil
}

// seal is what all cursors of this catalogue and server begin with: six bytes
// for the one, four for the other.
func (c *Catalog) seal(server string) []byte {
	return append(hash(c.revision)[:6:6], hash(server)[:4]...)
}

// An UnknownError says that no visible tool has a name.
type UnknownError struct {
	Name string   // cleaned
	Near []string // visible names that resemble it, best first
}

func (e *UnknownError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("no tool is called %q: find one by search_tools", e.Name)
	}
	return fmt.Sprintf("no tool is called %q: did you mean %s?", e.Name, strings.Join(e.Near, " or "))
}

// Declare gives the long declaration of one tool, by any name that Resolve
// knows, or of a saved script, by name. The error is an *UnknownError.
func (v *View) Declare(name string) (string, error) {
	t, err := v.find(name)
	if err != nil {
		return "", err
	}
	return v.catalog.show(t, tsdecl.Options{Doc: true}), nil
}

// find is Resolve among what is visible. It also finds saved scripts, as "name" and
// as run("name").
func (v *View) find(name string) (*Tool, error) {
	if t := v.catalog.Resolve(name).Tool; t != nil && v.Shows(t) {
		return t, nil
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, `run("`), `")`)
	if t, ok := v.catalog.Saved(short); ok {
		return t, nil
	}
	return nil, &UnknownError{tsdecl.Plain(name, MaxName), v.Near(name, 3)}
}

// Shows reports whether the view shows a tool of its catalogue.
func (v *View) Shows(t *Tool) bool {
	_, ok := slices.BinarySearch(v.seen().names, t.Script)
	return ok
}

// fits are the visible tools that name may stand for, by their script names.
func (v *View) fits(name string) (names []string) {
	for _, t := range v.catalog.Resolve(name).Fits {
		if v.Shows(t) {
			names = append(names, t.Script)
		}
	}
	return names
}

// Near gives at most n visible script names that resemble name, best first: those that
// it may stand for, where they are several; else other spellings (githubCreateIssue),
// a missing server, typing errors, words in another order.
func (v *View) Near(name string, n int) []string {
	for _, prefix := range []string{"mcp__", "codemode.", "codemode__", "tools.", "functions."} {
		name = strings.TrimPrefix(name, prefix)
	}
	if fits := v.fits(name); len(fits) > 1 {
		return fits[:min(len(fits), max(n, 0))]
	}
	if len(name) > 2*MaxName {
		name = name[:2*MaxName]
	}
	x, seen := v.catalog.index(), v.seen()
	want := plain(name)
	var parts []string
	words(name, func(stem string) { parts = append(parts, stem) })

	type candidate struct {
		name  string
		score float64
	}
	var found []candidate
	add := func(script string, score float64) {
		if score >= 0.5 {
			found = append(found, candidate{script, score})
		}
	}
	for i, k := range x.keys {
		if seen.let[i] {
			add(x.tools[i].Script, k.alike(want, parts))
		}
	}
	for _, t := range v.catalog.tools[:v.catalog.own] {
		if _, ok := slices.BinarySearch(seen.names, t.Script); ok {
			add(t.Script, newKey(t).alike(want, parts))
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(max(n, 0), len(found))] {
		// What is much worse than the best is no suggestion.
		if c.score >= found[0].score-0.25 {
			names = append(names, c.name)
		}
	}
	return names
}

// Declarations gives the short declarations of all visible tools and of the
// saved scripts, one a line, and whether they fit in limit bytes; if not, it
// gives none. What was observed is left out: the text stays the same for the
// same definitions.
func (v *View) Declarations(limit int) (string, bool) {
	var b strings.Builder
	for _, t := range v.seen().listed {
		if t.broken() {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t.Declaration())
		if b.Len() > limit {
			return "", false
		}
	}
	return b.String(), true
}
