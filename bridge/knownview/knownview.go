// Package knownview shows people what is known of servers, so that they can read it
// before they accept it, and says where a server differs from what is known of it.
package knownview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/profiles/known"
)

// A Row is a known server in a list, as --json prints it.
type Row struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Verified is the version whose tools were compared; empty if nobody did.
	Verified string   `json:"verified,omitempty"`
	Started  []string `json:"started"` // the forms in which it is known
	Tools    int      `json:"tools"`
}

// Rows are all known servers.
func Rows() []Row {
	var rows []Row
	for _, s := range known.All() {
		rows = append(rows, Row{s.Name, s.Title, s.Verified, forms(s), len(s.Tools)})
	}
	return rows
}

// Table is all known servers as a table, the verified ones first.
func Table() [][]string {
	table := [][]string{{"name", "title", "verified", "tools", "started as"}}
	var unverified [][]string
	for _, r := range Rows() {
		row := []string{r.Name, r.Title, r.Verified, fmt.Sprint(r.Tools), strings.Join(r.Started, "\n")}
		if r.Verified == "" {
			row[2] = "no"
			unverified = append(unverified, row)
			continue
		}
		table = append(table, row)
	}
	return append(table, unverified...)
}

// forms are the forms in which a server is started, as people type them.
func forms(s known.Server) []string {
	var all []string
	for _, l := range s.Launch {
		words := []string{l.URL}
		switch {
		case l.NPM != "":
			words = []string{"npx", "-y", l.NPM}
		case l.PyPI != "":
			words = []string{"uvx", l.PyPI}
		case l.Docker != "":
			words = []string{"docker", "run", "-i", "--rm", l.Docker}
		}
		for _, arg := range l.Args {
			words = append(words, strings.ToUpper(arg))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// A Server is what is known of a server, as --json prints it.
type Server struct {
	Name string `json:"name"`
	known.Server
}

// Head says in lines how a server is started, and what accepting it means.
func Head(s known.Server) []string {
	head := []string{fmt.Sprintf("%s (%s)", s.Title, s.Name)}
	if s.Verified != "" {
		head = append(head, fmt.Sprintf("  verified with what version %s lists; you accept it for a server by \"known\": %q", s.Verified, s.Name+"@"+s.Verified))
	} else {
		head = append(head, "  not verified: written from its documentation, so that it only makes decisions stricter")
	}
	if s.Source != "" {
		head = append(head, "  "+s.Source)
	}
	for i, form := range forms(s) {
		l := s.Launch[i]
		if s.Verified != "" && l.NPM == "" {
			form += "  (not verified in this form)"
		}
		head = append(head, "  started as  "+form)
		var may []string
		for _, flag := range l.Flags {
			may = append(may, strings.TrimSuffix(flag, "="))
		}
		if may = append(may, l.Env...); len(may) > 0 {
			head = append(head, "    and with no flags and variables but "+strings.Join(may, " "))
		}
	}
	return head
}

// roles in the order in which they matter to a person, with how they are shown.
var roles = []known.Role{known.Recipient, known.Path, known.PathOrHost, known.Host, known.Command, known.SQL, known.Amount, known.Store, known.Place, known.Content, known.Plain}

// Tools is a table of what a server's tools are known to do, in the words of the file.
func Tools(s known.Server) [][]string {
	table := [][]string{{"tool", "effects", "where", "net", "arguments", "besides"}}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[name]
		net := t.Net
		if net == "" {
			net = known.NetNone
		}
		table = append(table, []string{name, words(t.Effects), string(t.Where), string(net), arguments(t), besides(t)})
	}
	return table
}

// arguments are those of a tool by their roles.
func arguments(t known.Tool) string {
	var all []string
	for _, role := range roles {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(t.Args)) {
			if t.Args[name] == role {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			all = append(all, string(role)+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(all, "; ")
}

// besides is what else a tool is, and then what its arguments change.
func besides(t known.Tool) string {
	all := changes(t)
	if marks := marks(t); len(marks) > 0 {
		all = append([]string{strings.Join(marks, ", ")}, all...)
	}
	return strings.Join(all, "; ")
}

func marks(t known.Tool) []string {
	var all []string
	if t.Repeatable {
		all = append(all, "repeatable")
	}
	if t.Stateful {
		all = append(all, "stateful")
	}
	for _, label := range t.Labels {
		all = append(all, string(label))
	}
	return all
}

func changes(t known.Tool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.When)) {
		for _, word := range slices.Sorted(maps.Keys(t.When[name])) {
			all = append(all, fmt.Sprintf("%s %s: only %s", name, strings.ReplaceAll(word, "|", " or "), change(t.When[name][word])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Adds)) {
		all = append(all, fmt.Sprintf("with %s also %s", name, change(t.Adds[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		all = append(all, fmt.Sprintf("%s one of %s", name, strings.Join(t.Values[name], " ")))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Under)) {
		if from := t.Under[name]; from != "" {
			all = append(all, fmt.Sprintf("%s starts at %s", name, from))
		} else {
			all = append(all, name+" is unknown if it is relative")
		}
	}
	return all
}

// change says what an argument changes, in the words of the file.
func change(c known.Change) string {
	var all []string
	if len(c.Effects) > 0 {
		all = append(all, words(c.Effects))
	}
	if c.Where != "" {
		all = append(all, string(c.Where))
	}
	if c.Net != "" {
		all = append(all, "net "+string(c.Net))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		all = append(all, fmt.Sprintf("%s is a %s", name, c.Args[name]))
	}
	return strings.Join(all, ", ")
}

func words[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}
