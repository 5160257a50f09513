package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/bridge/strict"
	"codemode-bridge/profiles"

	"github.com/tailscale/hujson"
)

// A configuration can include documents. They lie below the file: what the file says takes the
// place of what they say, key by key, where that loosens nothing. Whoever loads a configuration
// fetches the documents first ([Includes]), parses all together ([Texts]), and judges each
// [Conflict], with [Texts.Keeping]: this package knows what was written, and not what is looser.

// A Document is one that a configuration includes, as it was fetched and verified.
type Document struct {
	Name   string `json:"name"` // a file or a URL, as it stands in messages
	Ref    string `json:"ref"`  // with how it is pinned: [policydoc.Include.Ref]
	Text   string `json:"text"`
	Key    string `json:"key,omitempty"` // that signed it
	Serial int64  `json:"serial,omitempty"`
}

// Included are the documents of a configuration, the first one lowest, and the conflicts in
// which the documents hold.
type Included struct {
	Documents []Document `json:"documents"`
	Without   []string   `json:"without,omitempty"`
}

// String is the form that [Texts] have; empty without documents.
func (i Included) String() string {
	if len(i.Documents) == 0 {
		return ""
	}
	text, err := json.Marshal(i)
	if err != nil {
		return "" // strings and numbers can always be written
	}
	return string(text)
}

// files are the absolute names of the documents that are files.
func (i Included) files() (all []string) {
	for _, doc := range i.Documents {
		if filepath.IsAbs(doc.Ref) {
			all = append(all, doc.Ref)
		}
	}
	return all
}

// Documents returns what is included.
func (t Texts) Documents() (i Included, err error) {
	if t.Included == "" {
		return i, nil
	}
	if err := json.Unmarshal([]byte(t.Included), &i); err != nil {
		return i, fmt.Errorf("reading what %s includes: %w", t.Name, err)
	}
	return i, nil
}

// Included returns what the configuration includes.
func (c *Config) Included() Included { return c.from.included }

// SignedAnew returns texts with the newer documents that c includes under the same address and the
// same key in the place of theirs: whoever signs a document has approved it.
func (c *Config) SignedAnew(texts Texts) Texts {
	was, err := texts.Documents()
	if err != nil {
		return texts
	}
	for i, old := range was.Documents {
		for _, doc := range c.from.included.Documents {
			if old.Key != "" && doc.Ref == old.Ref && doc.Key == old.Key && doc.Serial > old.Serial {
				was.Documents[i] = doc
			}
		}
	}
	texts.Included = was.String()
	return texts
}

// Conflicts are the places at which a document and what lies above it differ.
func (c *Config) Conflicts() []Conflict { return c.from.conflicts }

// A Conflict is a value that the file, or a later document, says otherwise than a document, or adds where
// a document has the whole section.
type Conflict struct {
	Path  string // its JSON pointer
	Above *FieldError
	// Below says where the document says otherwise, or where its section is.
	Below string
}

// An Entry is one entry of include with its place.
type Entry struct {
	policydoc.Include
	src    *strict.Source
	offset int
	path   string
}

// Problem says what is wrong with the entry, at its place.
func (e *Entry) Problem(message, hint string) error {
	return Problems{e.src.Problem(e.offset, e.path, message, hint)}
}

// Includes returns what the text of a configuration or of a document includes. Mistakes elsewhere in it
// are left to Parse.
func Includes(name string, data []byte) ([]Entry, error) {
	src := strict.NewSource(name, data)
	tree, problem := src.Parse()
	if problem != nil {
		return nil, Problems{problem}
	}
	i := member(tree.Value.(*hujson.Object), "include")
	if i < 0 {
		return nil, nil
	}
	var list []policydoc.Include
	d := &decoder{findings: newFindings(src)}
	value := tree.Value.(*hujson.Object).Members[i].Value
	d.decode(value, reflect.ValueOf(&list).Elem(), spot{path: "/include", name: "include"})
	if len(d.problems) > 0 {
		return nil, d.problems.Sorted()
	}
	var all []Entry
	for i, e := range value.Value.(*hujson.Array).Elements {
		all = append(all, Entry{list[i], src, e.StartOffset, fmt.Sprintf("/include/%d", i)})
	}
	return all, nil
}

func member(o *hujson.Object, key string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == key })
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// Keeping reads the texts as if what lies above the first documents said nothing in conflict with them, but
// for the paths in take.
func (t Texts) Keeping(first int, take []string, env Env, policy ...profiles.Options) (*Config, error) {
	return t.parse(env, policy, reading{only: &only{first, take}})
}

// An only says which conflicts with the first documents the upper layers win.
type only struct {
	first int
	take  []string
}

// layers lays a configuration over what it includes.
func (how reading) layers(src *strict.Source, top hujson.Value) (hujson.Value, []Conflict, *FieldError) {
	docs := how.included.Documents
	if len(docs) == 0 {
		return top, nil, nil
	}
	last, base := src, len(src.Text)+1
	for last.Over != nil {
		last = last.Over
		base += len(last.Text) + 1
	}
	all := make([]*hujson.Object, 0, len(docs)+1)
	for _, doc := range docs {
		below := strict.NewSource(doc.Name, []byte(doc.Text))
		tree, problem := below.Parse()
		if problem != nil {
			return top, nil, problem
		}
		for v := range tree.All() {
			v.StartOffset += base
			v.EndOffset += base
		}
		last.Over, last, base = below, below, base+len(below.Text)+1
		o := tree.Value.(*hujson.Object)
		o.Members = slices.DeleteFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == "include" || nameOf(m) == "$schema" })
		all = append(all, o)
	}
	all = append(all, top.Value.(*hujson.Object))
	for _, o := range all {
		if i := member(o, "mcpServers"); i >= 0 && member(o, "servers") < 0 {
			o.Members[i].Name.Value = hujson.String("servers")
		}
	}
	l := &layering{src: src, take: func(path string) bool { return !slices.Contains(how.included.Without, path) }}
	lower, upper := all[:1], all[1:]
	if how.only != nil {
		lower, upper = all[:how.only.first], all[how.only.first:]
	}
	below := l.fold(lower)
	if how.only == nil {
		for _, o := range upper {
			l.lay(below, o, "", false)
		}
	} else {
		above := l.fold(upper)
		l.conflicts, l.take = nil, func(path string) bool { return slices.Contains(how.only.take, path) }
		l.lay(below, above, "", false)
	}
	if l.refused != nil {
		return top, nil, l.refused
	}
	top.Value = below
	return top, l.conflicts, nil
}

// A layering lays objects over each other.
type layering struct {
	src       *strict.Source
	take      func(path string) bool // whether the upper one wins
	conflicts []Conflict
	refused   *FieldError
}

func (l *layering) fold(all []*hujson.Object) *hujson.Object {
	for _, o := range all[1:] {
		l.lay(all[0], o, "", false)
	}
	return all[0]
}

// ownKeys are the keys that a file may add to a section that belongs to a document.
var ownKeys = []string{"/evaluation/workspace", "/approvals/listen", "/approvals/allowedHosts"}

// owned reports whether a section belongs to the document that has it: more keys in it are
// conflicts. Of the others, the document has only the keys that it says.
func owned(path string, section *hujson.Object) bool {
	return strings.Count(path, "/") >= 2 || path == "/evaluation" || path == "/approvals" && member(section, "approvers") >= 0
}

func (l *layering) lay(below, above *hujson.Object, path string, whole bool) {
	if path == "" {
		l.servers(below, above)
	}
	for _, m := range above.Members {
		at := spot{path: path}.below(nameOf(m)).path
		i := member(below, nameOf(m))
		if i < 0 {
			if !whole || slices.Contains(ownKeys, at) || l.conflict(at, m, below) {
				below.Members = append(below.Members, m)
			}
			continue
		}
		is := &below.Members[i]
		lower, both := is.Value.Value.(*hujson.Object)
		upper, objects := m.Value.Value.(*hujson.Object)
		switch {
		case both && objects:
			l.lay(lower, upper, at, whole || owned(at, lower))
		case alike(is.Value, m.Value):
		case l.conflict(at, m, is):
			*is = m
		}
	}
}

// conflict notes one and reports whether the upper value is taken.
func (l *layering) conflict(path string, above hujson.ObjectMember, below any) bool {
	at := l.src.Problem(above.Name.StartOffset, path, "", "")
	place := ""
	switch b := below.(type) {
	case *hujson.ObjectMember:
		line, column := l.src.Place(b.Name.StartOffset)
		place = fmt.Sprintf("%s:%d:%d", l.src.FileOf(b.Name.StartOffset), line, column)
		if text := b.Value.Clone(); b.Value.Value.Kind() != '"' && b.Value.Value.Kind() != '{' { // a text may be secret
			text.Minimize()
			if s := text.String(); len(s) < 60 && !strings.Contains(s, "\"") {
				place += " says " + s
			}
		}
	case *hujson.Object:
		if len(b.Members) > 0 {
			line, column := l.src.Place(b.Members[0].Name.StartOffset)
			place = fmt.Sprintf("%s:%d:%d", l.src.FileOf(b.Members[0].Name.StartOffset), line, column)
		}
	}
	l.conflicts = append(l.conflicts, Conflict{path, at, place})
	return l.take(path)
}

func alike(a, b hujson.Value) bool {
	a, b = a.Clone(), b.Clone()
	a.Minimize()
	b.Minimize()
	return a.String() == b.String()
}

// servers applies what documents say of all servers to those that are added above them: where
// "closed" is true there may be none, and their reactions to tools are compared with the document's.
func (l *layering) servers(below, above *hujson.Object) {
	i := member(above, "servers")
	if i < 0 {
		return
	}
	added, ok := above.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return
	}
	had := &hujson.Object{}
	if j := member(below, "servers"); j >= 0 {
		if o, ok := below.Members[j].Value.Value.(*hujson.Object); ok {
			had = o
		}
	}
	for k := range added.Members {
		m := &added.Members[k]
		if member(had, nameOf(*m)) >= 0 {
			continue
		}
		if c := member(below, "closed"); c >= 0 && below.Members[c].Value.Value.Kind() == 't' && l.refused == nil {
			l.refused = l.src.Problem(m.Name.StartOffset, spot{path: "/servers"}.below(nameOf(*m)).path,
				"a document that is included allows no servers but its own", "leave it out, or ask for it to be added there: "+l.src.FileOf(below.Members[c].Name.StartOffset)+` says "closed": true`)
		}
		server, ok := m.Value.Value.(*hujson.Object)
		for _, key := range []string{"newTools", "changedTools"} {
			said := member(below, key)
			if !ok || said < 0 {
				continue
			}
			if at := member(server, key); at >= 0 && !alike(server.Members[at].Value, below.Members[said].Value) &&
				!l.conflict(spot{path: "/servers"}.below(nameOf(*m)).path+"/"+key, server.Members[at], &below.Members[said]) {
				server.Members = slices.Delete(server.Members, at, at+1)
			}
		}
	}
}
