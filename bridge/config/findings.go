package config

import (
	"strings"

	"codemode-bridge/bridge/strict"

	"github.com/tailscale/hujson"
)

// findings are what is known of a file: where every value stands, and what is
// wrong. The decoder makes them and the checker adds to them; both name values by
// their JSON pointers.
type findings struct {
	src      *strict.Source
	problems Problems
	places   map[string]place
	// unusable has the values that have been complained of, or that need a
	// variable which nobody has to set.
	unusable map[string]bool
	// unknownKeys has the objects with unknown keys: what they seem to lack may be
	// what those keys were meant for.
	unknownKeys map[string]bool
}

func newFindings(src *strict.Source) *findings {
	return &findings{src: src, places: map[string]place{}, unusable: map[string]bool{}, unknownKeys: map[string]bool{}}
}

// A place is where a value and its key stand, and its text if it is a string.
// An object is best shown by its key.
type place struct {
	key, value int
	literal    hujson.Literal
	object     bool
}

func (f *findings) complain(offset int, path, message, hint string) {
	f.unusable[path] = true
	f.problems = append(f.problems, f.src.Problem(offset, path, message, hint))
}

// at complains of the value with this pointer, or of the nearest one around
// it that is in the file.
func (f *findings) at(path, message, hint string) { f.inside(path, -1, message, hint) }

// inside is at for one byte of a string's value.
func (f *findings) inside(path string, offset int, message, hint string) {
	f.complain(where(f.places, path, offset), path, message, hint)
}

// where is the offset of the value with this pointer, or of the nearest one
// around it that is in the file; with an offset, that of a byte of the string.
func where(places map[string]place, path string, offset int) int {
	for known := path; ; known = known[:strings.LastIndexByte(known, '/')] {
		p, ok := places[known]
		switch {
		case !ok && known != "":
			continue
		case p.object:
			return p.key
		case known == path && offset >= 0 && p.literal != nil:
			return p.value + strict.Within(p.literal, offset)
		}
		return p.value
	}
}

// key complains of the key of the value with this pointer.
func (f *findings) key(path, message, hint string) {
	f.complain(f.places[path].key, path, message, hint)
}

// has reports whether the file has a value with this pointer.
func (f *findings) has(path string) bool {
	_, ok := f.places[path]
	return ok
}

// sound reports whether the file has the value and nothing is wrong with it.
func (f *findings) sound(path string) bool { return f.has(path) && !f.unusable[path] }

// written returns the text of a string as the file has it.
func written(p place) string { return p.literal.String() }
