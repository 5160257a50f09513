package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A FieldError is one mistake in a configuration file. Its texts never hold a
// value that came from a variable, a header or a server's environment.
type FieldError struct {
	// File is the file's name as it was given to Load or Parse.
	File string `json:"file"`
	// Line and Column are the place of the mistake, counted from 1. Columns
	// count characters (Unicode code points), not bytes.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path names the value as a JSON pointer (RFC 6901), such as
	// "/servers/github/timeout". It is empty where the text is no JSON at all
	// and for the file as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong, and Hint, if there is one, what to do.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error gives the mistake in one line: place, message, and hint in brackets.
func (e *FieldError) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += " (hint: " + e.Hint + ")"
	}
	return text
}

// Problems are all the mistakes of one file, in the order of their places.
type Problems []*FieldError

// MaxProblems bounds what one file can report. A file with more mistakes than
// this is not a configuration, and nobody reads on.
const MaxProblems = 100

// Error gives one line for each mistake.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, e := range p {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first FieldError.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, e := range p {
		errs[i] = e
	}
	return errs
}

// Sorted orders the problems by place, drops exact repetitions and cuts the
// list at MaxProblems.
func (p Problems) Sorted() Problems {
	slices.SortStableFunc(p, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	p = slices.CompactFunc(p, func(a, b *FieldError) bool { return *a == *b })
	if len(p) > MaxProblems {
		next := p[MaxProblems]
		more := len(p) - MaxProblems
		p = append(p[:MaxProblems:MaxProblems], &FieldError{
			File: next.File, Line: next.Line, Column: next.Column,
			Message: fmt.Sprintf("%d more mistakes from here on are not listed", more),
		})
	}
	return p
}

// A Mistake is what is wrong with one value, before its place is known.
type Mistake struct{ Message, Hint string }

func (m *Mistake) Error() string { return m.Message }

// Wrong returns a Mistake; the hint may be empty.
func Wrong(hint, format string, args ...any) error {
	return &Mistake{fmt.Sprintf(format, args...), hint}
}
