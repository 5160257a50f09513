package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A format is the syntax of a file. Its edits are of bytes: what they do not
// have to touch stays as it is.
type format interface {
	// decode reads a text as data; an empty text is an empty object.
	decode(text []byte) (map[string]any, error)
	// names are those of the members below keys, in the order of the text.
	names(text []byte, keys []string) ([]string, error)
	// insert adds a member at the end of the object below keys. Objects that
	// are missing on the way are made.
	insert(text []byte, keys []string, m member) ([]byte, error)
	// remove takes a member away and returns its text, which insert takes.
	remove(text []byte, keys []string, name string) (after []byte, taken string, err error)
	// write is the text of an object with one member, as people paste it.
	write(keys []string, m member) string
}

// A member is an entry to be written: its text as it once stood in such a
// file or, without one, its fields.
type member struct {
	name   string
	text   string
	fields []field
}

// A field is one key of an entry. Its value is a string, a []string, a bool,
// an int, an object with one text or, for an empty object, a struct{}.
type field struct {
	key   string
	value any
}

// A oneText is an object with one text.
type oneText struct{ key, value string }

// maxDepth bounds how deep a file may be nested: parsers call themselves for
// every level, and no client's file comes near.
const maxDepth = 200

// edited checks an edit by what the texts mean: they must be the same except for the
// members names of the object below keys, of which exactly those in want must be there
// afterwards.
func edited(f format, before, after []byte, keys []string, names, want []string) error {
	old, err := f.decode(before)
	if err != nil {
		return err
	}
	now, err := f.decode(after)
	if err != nil {
		return fmt.Errorf("the file would be broken after it: %w", err)
	}
	oldServers, nowServers := members(old, keys), members(now, keys)
	if nowServers == nil {
		return fmt.Errorf("%s would be no object", strings.Join(keys, "."))
	}
	for _, name := range names {
		if _, there := nowServers[name]; there != slices.Contains(want, name) {
			return fmt.Errorf("the entry %q would not be as it should be (is it there twice?)", name)
		}
		delete(oldServers, name)
		delete(nowServers, name)
	}
	if !reflect.DeepEqual(old, now) {
		return fmt.Errorf("something else would change with it")
	}
	return nil
}

// members returns the object below keys, which is made where it is missing; nil if
// something else is there.
func members(tree map[string]any, keys []string) map[string]any {
	at := tree
	for _, key := range keys {
		if at[key] == nil {
			at[key] = map[string]any{}
		}
		next, ok := at[key].(map[string]any)
		if !ok {
			return nil
		}
		at = next
	}
	return at
}

// quote is a string as JSON, TOML and YAML all read it.
func quote(s string) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	// TOML has no bare DEL in a string.
	return strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "\x7f", `\u007f`)
}

// newline is how a text ends its lines.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentOf returns the white space that begins the line that the offset is in.
func indentOf(text []byte, offset int) string {
	line := text[bytes.LastIndexByte(text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// A cut is a part of a text and what takes its place.
type cut struct {
	from, to int
	text     string
}

// splice makes cuts, which stand in order and do not overlap.
func splice(text []byte, cuts ...cut) []byte {
	var out []byte
	at := 0
	for _, c := range cuts {
		out = append(append(out, text[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, text[at:]...)
}

// cutBOM splits the byte order mark off a text, so that an edit can put it back.
func cutBOM(text []byte) (bom, body []byte) {
	mark := []byte("\xef\xbb\xbf")
	if body, ok := bytes.CutPrefix(text, mark); ok {
		return mark, body
	}
	return nil, text
}
