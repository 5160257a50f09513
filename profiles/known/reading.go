package known

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Reading is what one call means by the file of its server.
type Reading struct {
	// Tool is what is known of the tool as this call uses it: its effects, where, net
	// and roles are those of the call.
	Tool Tool
	// Values are the values that have a role other than content and plain, sorted
	// by parameter.
	Values []Value
	// Unknown are the arguments of the call of which nobody knows what they mean,
	// sorted: the file does not name them, or they are not what it says (a path that is
	// a number, a value that it does not have). With one of them the call is guessed.
	Unknown []string
}

// A Value is one value in the arguments of a call.
type Value struct {
	Param string // dotted, with the index of an element: "paths.0"
	Role  Role   // never Store, Member, PathOrHost or SQL: those are read as Recipient, Path, Host or Command
	Text  string // a path that starts at another argument has that before it
	// Member reports that the recipient is one by the role [Member].
	Member bool
}

// Describes reports whether the file still describes a tool, by the arguments in its
// schema: it names all that a call must have, and none of those that say where or
// what is gone. Others may be new: they matter only to a call that has them.
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
	for name := range t.When {
		if !slices.Contains(arguments, name) {
			return false
		}
	}
	return true
}

// Read says what a call of t with these arguments means. The arguments are a tree of
// string, bool, nil, numbers, []any and map[string]any.
func (t Tool) Read(args map[string]any) Reading { return t.ReadIn("", args) }

// ReadIn is Read for a call to a server whose earlier calls have chosen a folder, by
// the argument that is their tool's Home. If home is empty, nobody knows that folder.
func (t Tool) ReadIn(home string, args map[string]any) Reading {
	r := reader{Reading{Tool: t.calledWith(args)}, args, home}
	if home != "" {
		r.args = maps.Clone(args)
		for name, from := range t.Under {
			if _, has := args[name]; from == "" && !has {
				r.args[name] = here
			}
		}
	}
	r.readKeys("", "", r.args)
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		if slices.ContainsFunc(valuesAt(args, name), func(v any) bool { return !t.hasValue(name, v) }) {
			r.unknown(name)
		}
	}
	slices.Sort(r.Unknown)
	return r.Reading
}

// A reader is in the middle of reading a call.
type reader struct {
	Reading
	args map[string]any
	home string
}

// here is the path of the folder that an earlier call chose.
const here = "."

func (r *reader) unknown(param string) {
	if !slices.Contains(r.Unknown, param) {
		r.Unknown = append(r.Unknown, param)
	}
}

func (r *reader) value(param string, role Role, text string) {
	v := Value{Param: param, Role: role, Text: text}
	if role == Member {
		v.Role, v.Member = Recipient, true
	}
	r.Values = append(r.Values, v)
}

// readKeys reads the values of an object whose name, with a dot, is name.
func (r *reader) readKeys(name, at string, object map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if strings.Contains(key, ".") { // it must not be taken for a key of an object
			r.unknown(at + key)
			continue
		}
		r.read(name+key, at+key, object[key])
	}
}

// read reads the value of the parameter with that name. At is the name with the
// elements of arrays.
func (r *reader) read(name, at string, v any) {
	if list, ok := v.([]any); ok {
		for i, element := range list {
			r.read(name, at+"."+strconv.Itoa(i), element)
		}
		return
	}
	role := r.Tool.role(name)
	switch v := v.(type) {
	case map[string]any:
		switch {
		case role == Content || role == Plain:
		case role != "" || !r.Tool.inside(name):
			r.unknown(at)
		default:
			r.readKeys(name+".", at+".", v)
		}
	case string:
		r.readText(name, at, role, v)
	case nil:
		if role == "" && !r.Tool.inside(name) {
			r.unknown(at)
		}
	default: // a number or a boolean
		_, boolean := v.(bool)
		switch {
		case role == Content || role == Plain:
		case text(v) == "": // it is not shown
			r.unknown(at)
		case role == Amount, role == Place, (role == Recipient || role == Member) && !boolean: // an id may be a number
			r.value(at, role, text(v))
		default:
			r.unknown(at)
		}
	}
}

func (r *reader) readText(name, at string, role Role, v string) {
	switch {
	case role == "":
		r.unknown(at)
	case role == Content || role == Plain:
	case role == SQL:
		r.value(at, Command, v)
	case role == Store:
		r.value(at, Recipient, v)
	case role == Host || role == PathOrHost && isAddress(v):
		r.value(at, Host, v)
	case role == Path || role == PathOrHost:
		if full, ok := r.start(name, v); ok {
			r.value(at, Path, full)
		} else {
			r.unknown(at)
		}
	case role == Place && !isName(v):
		r.unknown(at)
	default:
		r.value(at, role, v)
	}
}

// isName reports whether a text can only be a name to the programs behind a server: not
// an option of one ("--server=…"; a number may be negative), and no part of a command
// in a shell.
func isName(text string) bool {
	if strings.ContainsAny(text, "`;|\n\r\x00") || strings.Contains(text, "$(") || strings.Contains(text, "${") {
		return false
	}
	return !strings.HasPrefix(text, "-") || len(text) > 1 && '0' <= text[1] && text[1] <= '9'
}

// start puts what a path starts at before it, if that is another argument. It reports
// false if nobody knows.
func (r *reader) start(name, path string) (string, bool) {
	from, other := r.Tool.Under[name]
	if !other || isAbsolute(path) {
		return path, true
	}
	if from == "" {
		return r.home, r.home != "" && path == here
	}
	base, ok := r.args[from].(string)
	if !ok || base == "" {
		return "", false
	}
	if base, ok = r.start(from, base); !ok {
		return "", false
	}
	return base + "/" + path, true // not made shorter: ".." may follow a link
}

// isAbsolute reports whether a path starts nowhere else, on any system.
func isAbsolute(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) || strings.HasPrefix(path, "~") ||
		filepath.IsAbs(path) || len(path) > 1 && path[1] == ':'
}

// isAddress reports whether a text that may be a path or an address is an address: it
// begins with a scheme, or with a host as in "git@example.com:x".
func isAddress(text string) bool {
	first, _, _ := strings.Cut(text, "/")
	return strings.IndexByte(first, ':') > 1 || strings.HasPrefix(text, "//")
}
