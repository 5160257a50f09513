package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/docs/reference"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	node "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	//go:embed page.html
	frame string
	//go:embed style.css
	style []byte
)

var layout = template.Must(template.New("page").Parse(frame))

// A site is the documents of a repository that links reach from its first ones, and the
// files that they link to.
type site struct {
	source fs.FS
	pages  map[string]*page // by the path of the document
	linked map[string]bool  // other files and folders that pages link to
	groups []group          // the navigation, as the README groups its documents
}

// A page is one document.
type page struct {
	source string
	title  string
	body   *node.Node
	parts  []link // its headings of the second level
}

type link struct{ Title, Href string }

// A group is documents under one heading of the navigation.
type group struct {
	Title string
	links []link // to sources
}

// newSite reads the documents that are reached from some.
func newSite(source fs.FS, from ...string) (*site, error) {
	s := &site{source: source, pages: map[string]*page{}, linked: map[string]bool{}}
	for queue := from; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if s.pages[name] != nil {
			continue
		}
		p, err := s.read(name)
		if err != nil {
			return nil, err
		}
		s.pages[name] = p
		for _, target := range p.targets() {
			switch info, err := fs.Stat(source, target); {
			case err != nil: // the check says so
			case path.Ext(target) == ".md":
				queue = append(queue, target)
			case info.IsDir() && s.page(target+"/README.md"):
				queue = append(queue, target+"/README.md")
			default:
				s.linked[target] = true
			}
		}
	}
	s.groups = s.navigation(from)
	return s, nil
}

// page reports whether there is such a document.
func (s *site) page(name string) bool {
	_, err := fs.Stat(s.source, name)
	return err == nil
}

// read renders one document.
func (s *site) read(name string) (*page, error) {
	text, err := fs.ReadFile(s.source, name)
	if err != nil {
		return nil, err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))
	var out bytes.Buffer
	if err := markdown.Convert(text, &out, parser.WithContext(parser.NewContext(parser.WithIDs(&slugs{has: map[string]bool{}})))); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	body := &node.Node{Type: node.ElementNode, Data: "main", DataAtom: atom.Main}
	nodes, err := node.ParseFragment(&out, body)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	p := &page{source: name, title: name, body: body}
	p.address()
	return p, nil
}

// slugs makes the anchors of headings as GitHub does.
type slugs struct{ has map[string]bool }

var notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	// What is a link's text, and not its address, makes the anchor.
	text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(string(value), "$1")
	slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
	name := slug
	for n := 1; s.has[name]; n++ {
		name = fmt.Sprintf("%s-%d", slug, n)
	}
	s.has[name] = true
	return []byte(name)
}

func (s *slugs) Put(value []byte) { s.has[string(value)] = true }

// address gives headings, keys and commands what a link needs, and notes the title and
// the parts.
func (p *page) address() {
	section := ""
	for n := range p.body.Descendants() {
		switch n.DataAtom {
		case atom.H1:
			p.title = textOf(n)
		case atom.H2, atom.H3, atom.H4, atom.H5:
			id := attribute(n, "id")
			section = ""
			if code := first(n, atom.Code); code != nil {
				section = textOf(code)
			}
			if n.DataAtom == atom.H2 {
				p.parts = append(p.parts, link{textOf(n), "#" + id})
			}
			n.AppendChild(here(id))
		case atom.Table:
			switch head := first(n, atom.Th); {
			case head == nil:
			case textOf(head) == "key":
				rows(n, func(row, cell *node.Node) { mark(row, cell, reference.KeyAnchor(section, textOf(cell))) })
			case textOf(head) == "command":
				rows(n, func(row, cell *node.Node) {
					for code := range cell.ChildNodes() {
						if code.DataAtom == atom.Code {
							mark(code, code, reference.CommandAnchor(textOf(code)))
						}
					}
				})
			}
		}
	}
}

// rows calls visit with the rows of a table's body and their first cells.
func rows(table *node.Node, visit func(row, cell *node.Node)) {
	for n := range table.Descendants() {
		if n.DataAtom == atom.Tr {
			if cell := first(n, atom.Td); cell != nil && first(cell, atom.Code) != nil {
				visit(n, cell)
			}
		}
	}
}

// mark gives an element an anchor, unless an earlier one has it, and puts a link to it
// into a cell.
func mark(at, cell *node.Node, id string) {
	top := at
	for top.Parent != nil {
		top = top.Parent
	}
	if ids(top)[id] {
		return
	}
	at.Attr = append(at.Attr, node.Attribute{Key: "id", Val: id})
	cell.AppendChild(here(id))
}

// here is a link to an anchor, for whoever wants to give it to somebody.
func here(id string) *node.Node {
	a := &node.Node{Type: node.ElementNode, Data: "a", DataAtom: atom.A, Attr: []node.Attribute{{Key: "class", Val: "here"}, {Key: "href", Val: "#" + id}, {Key: "aria-label", Val: "link to this"}}}
	a.AppendChild(&node.Node{Type: node.TextNode, Data: "#"})
	return a
}

func attribute(n *node.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// first is the first element of a kind within n; nil if there is none.
func first(n *node.Node, kind atom.Atom) *node.Node {
	for d := range n.Descendants() {
		if d.DataAtom == kind {
			return d
		}
	}
	return nil
}

func textOf(n *node.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == node.TextNode && (d.Parent == nil || attribute(d.Parent, "class") != "here") {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// ids are the anchors within n.
func ids(n *node.Node) map[string]bool {
	all := map[string]bool{}
	for d := range n.Descendants() {
		if id := attribute(d, "id"); id != "" {
			all[id] = true
		}
	}
	return all
}

// links calls visit with each attribute within n that names a file.
func links(n *node.Node, visit func(a *node.Attribute)) {
	for d := range n.Descendants() {
		for i := range d.Attr {
			if k := d.Attr[i].Key; k == "href" || k == "src" {
				visit(&d.Attr[i])
			}
		}
	}
}

// elsewhere reports whether a link leads to another site.
func elsewhere(target string) bool {
	return strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:")
}

// targets are the files of the repository that a page links to.
func (p *page) targets() (all []string) {
	links(p.body, func(a *node.Attribute) {
		if file, _, _ := strings.Cut(a.Val, "#"); file != "" && !elsewhere(file) {
			all = append(all, path.Join(path.Dir(p.source), file))
		}
	})
	return all
}

// place is where the site has a document, file or folder of the repository. Servers of
// files hide folders whose names begin with a dot.
func (s *site) place(source string) string {
	if s.pages[source+"/README.md"] != nil {
		source += "/README.md"
	}
	if s.pages[source] != nil {
		dir, name := path.Split(source)
		name = strings.ToLower(strings.TrimSuffix(name, ".md")) + ".html"
		if name == "readme.html" {
			name = "index.html"
		}
		source = dir + name
	} else if info, err := fs.Stat(s.source, source); err == nil && info.IsDir() {
		source += "/index.html"
	}
	return strings.TrimPrefix(source, ".")
}

// relative is the way from one place to another.
func relative(from, to string) string {
	for strings.Contains(from, "/") {
		dir, rest, _ := strings.Cut(from, "/")
		inside, found := strings.CutPrefix(to, dir+"/")
		if !found {
			break
		}
		from, to = rest, inside
	}
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// navigation is the README's own list of documents, each with the title that its page
// has, after the documents that the reading began with.
func (s *site) navigation(from []string) []group {
	start := group{Title: "Start"}
	listed := map[string]bool{}
	for _, name := range from {
		listed[name] = true
		start.links = append(start.links, link{s.pages[name].title, name})
	}
	groups := []group{start}
	within := false
	for n := range s.pages[from[0]].body.ChildNodes() {
		switch {
		case n.DataAtom == atom.H2:
			within = textOf(n) == "Documents"
		case within && n.DataAtom == atom.P:
			groups = append(groups, group{Title: strings.TrimSuffix(textOf(n), ":")})
		case within && n.DataAtom == atom.Ul:
			g := &groups[len(groups)-1]
			for d := range n.Descendants() {
				if d.DataAtom != atom.A {
					continue
				}
				file, _, _ := strings.Cut(attribute(d, "href"), "#")
				source := path.Join(path.Dir(from[0]), file)
				if p := s.pages[source]; p != nil && !listed[source] {
					listed[source] = true
					g.links = append(g.links, link{p.title, source})
				}
			}
		}
	}
	more := group{Title: "More"}
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		if !listed[source] {
			more.links = append(more.links, link{s.pages[source].title, source})
		}
	}
	groups = append(groups, more)
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.links) == 0 })
}

// A shownGroup is a group as one page shows it.
type shownGroup struct {
	Title string
	Links []shownLink
}

type shownLink struct {
	link
	Current bool
	Parts   []link
}

// files are all files of the site.
func (s *site) files() (map[string][]byte, error) {
	all := map[string][]byte{"style.css": style}
	for source, p := range s.pages {
		place := s.place(source)
		links(p.body, func(a *node.Attribute) {
			file, anchor, found := strings.Cut(a.Val, "#")
			if file == "" || elsewhere(file) {
				return
			}
			a.Val = relative(place, s.place(path.Join(path.Dir(source), file)))
			if found {
				a.Val += "#" + anchor
			}
		})
		text, err := s.framed(place, p.title, p.body, source, p.parts)
		if err != nil {
			return nil, err
		}
		all[place] = text
	}
	for name := range s.linked {
		if err := s.copied(name, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// copied adds a file that is linked as it is, or a folder with a page that lists it.
func (s *site) copied(name string, into map[string][]byte) error {
	info, err := fs.Stat(s.source, name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		into[s.place(name)], err = fs.ReadFile(s.source, name)
		return err
	}
	entries, err := fs.ReadDir(s.source, name)
	if err != nil {
		return err
	}
	list := "<h1>" + template.HTMLEscapeString(path.Base(name)) + "</h1>\n<ul>\n"
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		list += fmt.Sprintf("<li><a href=%q>%[1]s</a></li>\n", template.HTMLEscapeString(e.Name()))
		if into[strings.TrimPrefix(name, ".")+"/"+e.Name()], err = fs.ReadFile(s.source, name+"/"+e.Name()); err != nil {
			return err
		}
	}
	body := &node.Node{Type: node.ElementNode, Data: "main", DataAtom: atom.Main}
	nodes, err := node.ParseFragment(strings.NewReader(list+"</ul>\n"), body)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	place := s.place(name)
	into[place], err = s.framed(place, path.Base(name), body, "", nil)
	return err
}

// framed is a page with its head and the navigation.
func (s *site) framed(place, title string, body *node.Node, source string, parts []link) ([]byte, error) {
	var groups []shownGroup
	for _, g := range s.groups {
		shown := shownGroup{Title: g.Title}
		for _, l := range g.links {
			one := shownLink{link: link{l.Title, relative(place, s.place(l.Href))}, Current: l.Href == source}
			if one.Current {
				one.Parts = parts
			}
			shown.Links = append(shown.Links, one)
		}
		groups = append(groups, shown)
	}
	var text bytes.Buffer
	if err := node.Render(&text, body); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := layout.Execute(&out, map[string]any{
		"Title": title, "Style": relative(place, "style.css"), "Home": relative(place, "index.html"), "Groups": groups,
		"Body": template.HTML(text.String()), // rendered from the repository's own documents
	})
	return out.Bytes(), err
}
