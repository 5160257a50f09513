package known

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Reading is what one call means by the file of its server.
type Reading struct {
	Tool Tool
	// Values are the values that have a role other than content and plain, sorted
	// by parameter.
	Values []Value
	// Unknown are the arguments of the call whose role nobody knows, sorted: the
	// file does not name them, or they are not what it says (a path that is a
	// number). With one of them the call is guessed.
	Unknown []string
}

// A Value is one value in the arguments of a call.
type Value struct {
	Param string // dotted, with the index of an element: "paths.0"
	Role  Role
	Text  string
}

// Describes reports whether the file still describes a tool, by the arguments in its
// schema: it names all that a call must have, and none of those that say where is
// gone. Others may be new: they matter only to a call that has them.
func (t Tool) Describes(arguments, required []string) bool {
	for _, name := range required {
		if t.role(name) == "" && !t.inside(name) {
			return false
		}
	}
	for name, role := range t.Args {
		outer, _, _ := strings.Cut(name, ".")
		if role != Content && role != Plain && !slices.Contains(arguments, outer) {
			return false
		}
	}
	return true
}

// Read says what a call of t with these arguments means. The arguments are a tree of
// string, bool, nil, numbers, []any and map[string]any.
func (t Tool) Read(args map[string]any) Reading {
	r := Reading{Tool: t}
	t.readKeys(&r, "", "", args)
	return r
}

// readKeys reads the values of an object whose name, with a dot, is name.
func (t Tool) readKeys(r *Reading, name, at string, object map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if strings.Contains(key, ".") { // it must not be taken for a key of an object
			r.Unknown = append(r.Unknown, at+key)
			continue
		}
		t.read(r, name+key, at+key, object[key])
	}
}

// read reads the value of the parameter with that name. At is the name with the
// elements of arrays.
func (t Tool) read(r *Reading, name, at string, v any) {
	role := t.role(name)
	if list, ok := v.([]any); ok {
		for i, element := range list {
			t.read(r, name, at+"."+strconv.Itoa(i), element)
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		switch {
		case role == Content || role == Plain:
		case role != "" || !t.inside(name):
			r.Unknown = append(r.Unknown, at)
		default:
			t.readKeys(r, name+".", at+".", v)
		}
	case string:
		switch role {
		case "":
			r.Unknown = append(r.Unknown, at)
		case Content, Plain:
		default:
			r.Values = append(r.Values, Value{at, role, v})
		}
	case nil:
		if role == "" && !t.inside(name) {
			r.Unknown = append(r.Unknown, at)
		}
	default: // a number or a boolean
		switch role {
		case Content, Plain:
		case Amount, Place: // an id may be a number
			r.Values = append(r.Values, Value{at, role, text(v)})
		default:
			r.Unknown = append(r.Unknown, at)
		}
	}
}

// role returns the role of the parameter with that dotted name; empty if the file
// gives it none.
func (t Tool) role(name string) Role { return t.Args[name] }

// inside reports whether the file names keys of the object with that name.
func (t Tool) inside(name string) bool {
	for other := range t.Args {
		if strings.HasPrefix(other, name+".") {
			return true
		}
	}
	return false
}

func text(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case interface{ String() string }: // json.Number
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return ""
	}
}
