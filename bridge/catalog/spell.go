package catalog

import (
	"slices"
	"strings"
)

// A Resolution is which tool a name in a script stands for.
type Resolution struct {
	// Tool is the one; nil if there is none, or more than one.
	Tool *Tool
	// Other reports that the name is not the tool's script name.
	Other bool
	// Fits are the tools that the name may stand for, where that is not certain. The
	// caller must not show those that a profile hides.
	Fits []*Tool
}

// Resolve finds the tool that a script means by name. A script name and a path
// stand for their tool. Any other name is compared with the tools of one server:
// that of the part before "__" or "."; if it can be split so that it is of two servers, it stands for no tool. In both parts letter case, "-", "_" and "."
// make no difference (except "_" between two digits), so createIssue is create_issue.
// All tools of that server are compared, whoever may see or call them: a name that fits
// two of them stands for none. The names that earlier releases gave stand for their
// tools, too.
//
// Whoever calls what it finds must judge the call by the tool, as if the script had
// written its script name.
func (c *Catalog) Resolve(name string) Resolution {
	if t, ok := c.byName[name]; ok {
		return Resolution{Tool: t, Other: t.Script != name}
	}
	if len(name) > 4*MaxName {
		return Resolution{}
	}
	s := c.spelled()
	switch former := s.former[name]; {
	case len(former) == 1:
		return Resolution{Tool: former[0], Other: true}
	case len(former) > 1:
		return Resolution{Fits: former}
	}
	var fits []*Tool
	meant := s.meant(name)
	for _, m := range meant {
		for _, t := range s.tools[m.Server][fold(m.Tool)] {
			if !slices.Contains(fits, t) {
				fits = append(fits, t)
			}
		}
	}
	// Another server that fits may have such a tool, too, and not have listed it.
	certain := !slices.ContainsFunc(meant, func(m ToolRef) bool { return m.Server != meant[0].Server })
	if t := s.own[fold(name)]; t != nil {
		fits = append(fits, t)
	}
	if len(fits) == 1 && certain {
		return Resolution{Tool: fits[0], Other: true}
	}
	return Resolution{Fits: fits}
}

// Owners are the servers that a script may mean by name, whether or not they have listed
// such a tool, each with what is left of the name for the tool. A part that is no
// configured server's name stands for itself.
func (c *Catalog) Owners(name string) []ToolRef {
	if len(name) > 4*MaxName {
		return nil
	}
	var all []ToolRef
	if kept, ok := c.naming.owner[name]; ok {
		all = append(all, kept)
	}
	if server, tool, ok := strings.Cut(name, "__"); ok {
		all = append(all, ToolRef{server, tool})
	}
	return append(all, c.spelled().meant(name)...)
}

// Servers are the configured servers that a script may mean by the first part of a
// tool's name: the one whose tools' names begin so or that is called so, else all
// whose names are so in another spelling.
func (c *Catalog) Servers(part string) []string { return c.spelled().servers(part) }

// spellings find tools by other spellings of their names.
type spellings struct {
	exact  map[string][]string           // servers by prefix and by name
	folded map[string][]string           // servers, by those folded
	tools  map[string]map[string][]*Tool // by server, and the folded name there
	former map[string][]*Tool            // by the name that earlier releases gave
	own    map[string]*Tool              // the discovery functions, by folded name
}

func readSpellings(c *Catalog) spellings {
	s := spellings{map[string][]string{}, map[string][]string{}, map[string]map[string][]*Tool{}, map[string][]*Tool{}, map[string]*Tool{}}
	for server, prefix := range c.naming.prefix {
		for _, name := range slices.Compact([]string{prefix, server}) {
			s.exact[name] = append(s.exact[name], server)
			if key := fold(name); key != "" && !slices.Contains(s.folded[key], server) {
				s.folded[key] = append(s.folded[key], server)
			}
		}
	}
	for _, t := range c.tools[:c.own] {
		s.own[fold(t.Name)] = t
	}
	for _, t := range c.tools[c.own:] {
		if former := formerly(t); former != "" && former != t.Script {
			s.former[former] = append(s.former[former], t)
		}
		of := s.tools[t.Server]
		if of == nil {
			of = map[string][]*Tool{}
			s.tools[t.Server] = of
		}
		key := fold(t.Name)
		of[key] = append(of[key], t)
		if last, ok := strings.CutPrefix(t.Script, c.naming.prefix[t.Server]+"__"); ok && fold(last) != key {
			of[fold(last)] = append(of[fold(last)], t)
		}
	}
	for _, servers := range s.folded {
		slices.Sort(servers)
	}
	return s
}

// meant are the ways to read a name as a server's and one of a tool of it, which need not
// exist.
func (s spellings) meant(name string) (all []ToolRef) {
	for at := 1; at < len(name); at++ {
		rest, ok := strings.CutPrefix(name[at:], "__")
		if !ok {
			rest, ok = strings.CutPrefix(name[at:], ".")
		}
		if !ok || fold(rest) == "" {
			continue
		}
		for _, server := range s.servers(name[:at]) {
			all = append(all, ToolRef{server, rest})
		}
	}
	return all
}

func (s spellings) servers(part string) []string {
	if exact := s.exact[part]; len(exact) > 0 {
		return exact
	}
	return s.folded[fold(part)]
}

// fold makes equal what differs in spelling alone. "_" between two digits stays:
// v1_1 is not v11.
func fold(name string) string {
	b := make([]byte, 0, len(name))
	gap := false
	for _, r := range name {
		c := byte('_')
		if r < 0x80 {
			c = byte(r)
		}
		switch {
		case c == '-' || c == '.' || c == '_' || !identifierByte(c):
			gap = true
			continue
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		if gap && digit(c) && len(b) > 0 && digit(b[len(b)-1]) {
			b = append(b, '_')
		}
		gap, b = false, append(b, c)
	}
	return string(b)
}
