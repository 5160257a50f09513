// Package intl formats numbers, dates, lists and the like as Node's Intl
// does, so that a script that prints a table prints the same one here. It
// knows en-US, and that completely; any other locale, and any option that is
// not known, is an Error that says what to write instead, never a guess.
//
// What the locale looks like is data, not code: data.txt, made from Node's own
// answers by gen.mjs. The code fills patterns: number.go rounds decimal
// digits exactly and groups them, date.go picks a pattern for the fields
// that are asked for, words.go has plurals, lists and relative times,
// collate.go compares texts and segment.go cuts them.
//
// A formatter is made from a locale and from options as a script wrote them,
// each read once through Options, and can be used by one goroutine at a time.
package intl

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed data.txt
var data string

// tables returns data.txt by the kind and keys of its lines.
var tables = sync.OnceValue(func() map[string][]string {
	m := make(map[string][]string, 2000)
	for line := range strings.Lines(data) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		n := keys[fields[0]]
		m[strings.Join(fields[:n], "\t")] = fields[n:]
	}
	return m
})

// keys is how many of a line's fields are its key, by kind; zones are read
// on their own.
var keys = map[string]int{"date": 2, "time": 3, "cycle": 1, "periods": 1, "dateStyle": 2, "styleMonth": 2, "glue": 2, "months": 2, "weekdays": 2,
	"percent": 1, "currency": 2, "compact": 4, "money": 2, "unit": 3, "relative": 3, "named": 3, "list": 3, "zone": 2}

// lookup returns what a line of data.txt says, or nil.
func lookup(key ...string) []string { return tables()[strings.Join(key, "\t")] }

// text is lookup for a line of one field.
func text(key ...string) string {
	if v := lookup(key...); len(v) > 0 {
		return v[0]
	}
	return ""
}

// A Part is a piece of a formatted text, as formatToParts gives it.
type Part struct{ Type, Value string }

// Join returns the text of parts.
func Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Value)
	}
	return b.String()
}

// A Field is one property of resolvedOptions: a string, int or bool.
type Field struct {
	Name  string
	Value any
}

// Options reads one option as text; set is false where it is undefined.
type Options func(name string) (value string, set bool)

// An Error is thrown as an error of its Name: RangeError or TypeError.
type Error struct{ Name, Message string }

func (e *Error) Error() string { return e.Message }

func rangeError(message string) error { return &Error{"RangeError", message} }

// Default is the locale of a script that names none, and the only one.
const Default = "en-US"

// Known returns the canonical form of a locale, or an Error for one that is not
// known here.
func Known(tag string) (string, error) {
	base, _, _ := strings.Cut(tag, "-u-")
	switch {
	case base == "", strings.EqualFold(base, Default):
		return Default, nil
	case strings.EqualFold(base, "en"):
		return "en", nil
	case strings.ContainsFunc(base, outsideTags):
		return "", rangeError("Incorrect locale information provided")
	}
	return "", rangeError("the locale " + tag + " is not available here: write \"en-US\"; for 2024-03-05 use toISOString, and for other forms put the pieces of formatToParts together")
}

// outsideTags reports whether a character is part of no language tag.
func outsideTags(c rune) bool {
	switch {
	case c == '-', '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		return false
	}
	return true
}

// A reader reads options and keeps the first error.
type reader struct {
	get   Options
	where string // Intl.NumberFormat, or the method that was called
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// choice reads an option that has one of a few values.
func (r *reader) choice(name, otherwise string, values ...string) string {
	v, set := r.get(name)
	if !set {
		return otherwise
	}
	if !slices.Contains(values, v) {
		r.fail(rangeError("Value " + v + " out of range for " + r.where + " options property " + name))
	}
	return v
}

// number reads an option that is an integer; otherwise is returned if it is
// undefined.
func (r *reader) number(name string, least, most, otherwise int) int {
	v, set := r.get(name)
	if !set {
		return otherwise
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= float64(least)) || x > float64(most) {
		r.fail(rangeError(name + " value is out of range."))
		return least
	}
	return int(x)
}

// refuse refuses options that are not known here.
func (r *reader) refuse(names ...string) {
	for _, name := range names {
		if v, set := r.get(name); set {
			r.fail(rangeError("the option " + name + ": " + strconv.Quote(v) + " is not known here: leave it out"))
		}
	}
}
