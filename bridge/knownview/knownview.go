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
		if may := slices.Concat(l.Flags, l.Env); len(may) > 0 {
			head = append(head, "    and with no flags and variables but "+named(may))
		}
		if len(l.BoxedFlags) > 0 {
			head = append(head, "    and in a box with \"require\": true also with "+named(l.BoxedFlags))
		}
		if l.Confine != nil {
			text := "    in the box that is proposed for it, and was tried"
			if len(l.Confine.With) > 0 {
				text += " with " + named(l.Confine.With)
			}
			head = append(head, text+": "+l.Confine.String())
		}
	}
	return head
}

// named are the names of flags and variables.
func named(flags []string) string {
	names := make([]string, len(flags))
	for i, flag := range flags {
		names[i] = strings.TrimSuffix(flag, "=")
	}
	return strings.Join(names, " ")
}

// roles in the order in which they matter to a person.
var roles = []known.Role{
	known.Recipient, known.Member, known.Path, known.PathOrHost, known.Host, known.Command, known.SQL, known.Amount, known.Store, known.Place, known.Content,
	known.Plain,
}

// Tools is a table of what a server's tools are known to do, in the words of the file.
// Below a tool are the arguments that change what it does. The last column has what may
// be long, in lines of its own.
func Tools(s known.Server) [][]string {
	table := [][]string{{"tool", "where", "net", "effects and arguments"}}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[name]
		net := t.Net
		if net == "" {
			net = known.NetNone
		}
		table = append(table, []string{name, string(t.Where), string(net), below(words(t.Effects), arguments(t.Args), strings.Join(besides(t), ", "))})
		for _, arg := range slices.Sorted(maps.Keys(t.When)) {
			for _, value := range slices.Sorted(maps.Keys(t.When[arg])) {
				table = append(table, changeIf(arg, strings.Split(value, "|"), t.When[arg][value]))
			}
		}
		for _, arg := range slices.Sorted(maps.Keys(t.Adds)) {
			table = append(table, change("  with "+arg+" also", "", t.Adds[arg]))
		}
	}
	return table
}

// changeIf is the row of a change that values of an argument make. Where these are many,
// the last column has them.
func changeIf(arg string, values []string, c known.Change) []string {
	const widest = 50
	if when := "  if " + arg + " is " + strings.Join(values, " or "); len(when) <= widest {
		return change(when, "", c)
	}
	return change("  if "+arg+" is one of these", strings.Join(values, ", "), c)
}

func change(when, values string, c known.Change) []string {
	return []string{when, string(c.Where), string(c.Net), below(values, words(c.Effects), arguments(c.Args))}
}

// below returns texts in a line each, without those that are empty.
func below(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// arguments are the names of arguments by their roles.
func arguments(args map[string]known.Role) string {
	var all []string
	for _, role := range roles {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(args)) {
			if args[name] == role {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			all = append(all, string(role)+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(all, "; ")
}

func besides(t known.Tool) []string {
	var all []string
	if t.Repeatable {
		all = append(all, "repeatable")
	}
	if t.Stateful {
		all = append(all, "stateful")
	}
	if t.Runs != "" {
		all = append(all, "runs only "+string(t.Runs))
	}
	for _, label := range t.Labels {
		all = append(all, string(label))
	}
	for _, arg := range slices.Sorted(maps.Keys(t.Values)) {
		all = append(all, arg+" only "+few(t.Values[arg]))
	}
	for _, arg := range slices.Sorted(maps.Keys(t.Under)) {
		if t.Under[arg] == "" {
			all = append(all, arg+" starts nobody knows where")
		} else {
			all = append(all, arg+" starts at "+t.Under[arg])
		}
	}
	return all
}

func words[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}
