// Package intl formats numbers, dates, lists and the like as Node's Intl
// does, so that a script that prints a table prints the same one here. It
// knows a few locales, English ones first; anything it does not know is an
// Error that says what to write instead, never a guess.
//
// What a locale looks like is data, not code: data.txt, made from Node's own
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
var keys = map[string]int{"date": 3, "time": 4, "cycle": 2, "periods": 2, "dateStyle": 3, "styleMonth": 3, "glue": 3, "months": 3, "weekdays": 3,
	"symbols": 2, "grouping": 2, "percent": 2, "currency": 3, "compact": 5, "money": 3, "unit": 4, "relative": 3, "named": 3, "list": 4, "zone": 2}

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

// Default is the locale of a script that names none.
const Default = "en-US"

// Locales are those that are known by their full name.
var Locales = []string{"en-US", "en-GB", "en-CA", "en-AU", "en-IN", "de-DE", "fr-FR", "es-ES", "sv-SE"}

// A locale is what was asked for, and what data.txt calls it.
type locale struct{ tag, data string }

func (l locale) english() bool { return strings.HasPrefix(l.data, "en-") }

// Known returns the canonical form of a locale, or an Error if it is none
// that is known here.
func Known(tag string) (string, error) {
	l, err := findLocale(tag)
	return l.tag, err
}

func findLocale(tag string) (locale, error) {
	if tag == "" {
		return locale{Default, Default}, nil
	}
	base, _, _ := strings.Cut(tag, "-u-")
	for _, known := range Locales {
		language, _, _ := strings.Cut(known, "-")
		switch {
		case strings.EqualFold(base, known):
			return locale{known, known}, nil
		case strings.EqualFold(base, language): // the first of a language is its plain form
			return locale{language, known}, nil
		}
	}
	for _, c := range base {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return locale{}, rangeError("Incorrect locale information provided")
		}
	}
	return locale{}, rangeError("the locale " + tag + " is not known here: write \"en-US\", or one of " + strings.Join(Locales[1:], ", "))
}

// onlyEnglish refuses what is known in English only.
func (l locale) onlyEnglish(what string) error {
	if l.english() {
		return nil
	}
	return rangeError(what + " is known in English only here: write \"en-US\" instead of " + l.tag)
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

// choice reads an option that has a few values.
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
