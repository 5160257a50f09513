package gate

import (
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/misfit"
	"codemode-bridge/profiles"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// twins are two names of one object that differ only in letter case. A server that
// ignores case reads one of the two, and nobody knows which.
type twins struct {
	way  []misfit.Step // to the object
	a, b string
}

// findTwins lists the twins in a call's arguments, in a fixed order.
func findTwins(args map[string]any) (all []twins) {
	first := map[string]string{} // names of one object, by their folded form
	var look func(v any, way []misfit.Step)
	look = func(v any, way []misfit.Step) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				look(element, append(way, misfit.Step{Element: true}))
			}
		case map[string]any:
			clear(first)
			if len(v) > 1 {
				for name := range v {
					folded := profiles.FoldName(name)
					if other, ok := first[folded]; ok {
						all = append(all, twins{slices.Clone(way), min(name, other), max(name, other)})
						continue
					}
					first[folded] = name
				}
			}
			for name, member := range v {
				look(member, append(way, misfit.Step{Name: name}))
			}
		}
	}
	look(args, nil)
	slices.SortFunc(all, func(x, y twins) int {
		return strings.Compare(x.key()+"\x00"+x.a+"\x00"+x.b, y.key()+"\x00"+y.a+"\x00"+y.b)
	})
	return all
}

// key names the place of the object; the elements of an array share one.
func (t twins) key() string {
	var b strings.Builder
	for _, s := range t.way {
		if s.Element {
			b.WriteString("\x00[]")
		} else {
			b.WriteString("\x00." + s.Name)
		}
	}
	return b.String()
}

// text shows both names, as far as a person may see them.
func (t twins) text(hidden canon.DisplayOptions) string {
	var way []string
	for _, s := range t.way {
		if s.Element {
			s.Name = "[]"
		}
		way = append(way, s.Name)
	}
	at := func(name string) string { return misfit.Place(append(way[:len(way):len(way)], name), hidden) }
	if a, b := at(t.a), at(t.b); a != b {
		return fmt.Sprintf("%s and %s differ in case alone", a, b)
	}
	return "two names in " + misfit.Place(way, hidden) + " differ in case alone" // beneath a hidden one
}

// checkNames refuses twins if the server might read the one that was not decided
// on: if the tool declares one of them, or if a rule of the judging profiles reads
// or hides one. All others only become notes for the record: in plain data both
// names may be intended.
func checkNames(tool *catalog.Tool, schema *jsonschema.Schema, args map[string]any, by []*profiles.Profile) (notes []string, err *ArgumentError) {
	found := findTwins(args)
	if len(found) == 0 {
		return nil, nil
	}
	hidden := canon.DisplayOptions{Hidden: hiddenBy(by)}
	declared := declarations{schema: schema, tool: tool, search: misfit.Budget{Most: misfit.MaxWork}, places: map[string]map[string]bool{}}
	var reads []func(name string, depth int) bool
	for _, p := range by {
		reads = append(reads, p.Reads(tool.Server, tool.Name))
	}
	for _, t := range found {
		depth := 1
		for _, s := range t.way {
			if !s.Element {
				depth++
			}
		}
		if declared.has(t) || slices.ContainsFunc(reads, func(reads func(string, int) bool) bool { return reads(t.a, depth) }) {
			return nil, newArgumentError(tool, t.text(hidden)+", so the server may read either: give one of them")
		}
	}
	for _, t := range found[:min(len(found), misfit.MaxNoted)] {
		notes = append(notes, t.text(hidden))
	}
	if more := len(found) - len(notes); more > 0 {
		notes = append(notes, fmt.Sprintf("%d more pairs of names differ in case alone", more))
	}
	return notes, nil
}

// declarations finds out which names a tool's schema declares at a place. A schema
// that cannot be read, or takes too long to search, may declare any name.
type declarations struct {
	schema *jsonschema.Schema // nil if it cannot be read
	tool   *catalog.Tool
	search misfit.Budget
	places map[string]map[string]bool // by twins.key: names, folded
}

// has reports whether the schema may declare one of two names, or another that
// differs from them only in case.
func (d *declarations) has(t twins) bool {
	if d.schema == nil {
		return len(d.tool.Input) > 0
	}
	names, known := d.places[t.key()]
	if !known {
		names = map[string]bool{}
		for _, name := range d.search.Declared(d.schema, t.way) {
			names[profiles.FoldName(name)] = true
		}
		d.places[t.key()] = names
	}
	return names[profiles.FoldName(t.a)] || d.search.Spent > d.search.Most
}
