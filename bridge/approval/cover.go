package approval

import (
	"slices"
	"strings"
)

// A Cover says what wider answers to a call would cover: which calls are like it.
// The gate makes it; the zero value offers none.
//
// What is bound must be the same in a further call, and what is free may differ. A
// call that has an argument that is neither is not covered.
type Cover struct {
	// Kind says which calls are alike, as in a sentence: "write", or a tool's name,
	// "add_issue_comment". Only calls of one server can be alike.
	Kind  string   `json:"kind,omitempty"`
	Bound []Bound  `json:"bound,omitempty"` // what must be as it is, in order of weight
	Free  []string `json:"free,omitempty"`  // the arguments that may differ
	None  string   `json:"none,omitempty"`  // why no wider answer is offered; empty if one is
}

// A Bound is one thing that must be as it is.
type Bound struct {
	Param string    `json:"param"` // the argument or role as a person reads it: "owner", "folder", "host"
	Kind  BoundKind `json:"kind"`
	Value string    `json:"value"` // canonical
}

// A BoundKind says how a value is compared with a bound.
type BoundKind string

// The kinds of bounds.
const (
	Exact       BoundKind = "exact"
	UnderFolder BoundKind = "under_folder" // the folder itself, or what is in it
	AtHost      BoundKind = "at_host"
	ToRecipient BoundKind = "to_recipient"
	// Mentions is a host that a free text of the call names. A further call may name
	// fewer, and no others.
	Mentions BoundKind = "mentions"
)

// Offered reports whether a wider answer is offered.
func (c Cover) Offered() bool { return c.None == "" && c.Kind != "" }

// covers says why a yes that covers c does not cover the call whose own cover is
// one; empty if it does. Both must be of one server.
func (c Cover) covers(one Cover) (why string) {
	switch {
	case !c.Offered():
		return "nothing further is covered"
	case one.None != "":
		return one.None
	case one.Kind != c.Kind:
		return "it is another kind of call"
	}
	for _, b := range one.Bound {
		if !slices.ContainsFunc(c.Bound, func(had Bound) bool { return had.holds(b) }) {
			return b.Param + " is another one"
		}
	}
	for _, had := range c.Bound {
		if had.Kind != Mentions && !slices.ContainsFunc(one.Bound, had.holds) {
			return had.Param + " is another one"
		}
	}
	for _, name := range one.Free {
		if !slices.Contains(c.Free, name) {
			return name + " is a further argument"
		}
	}
	return ""
}

// holds reports whether a bound of a further call is within b.
func (b Bound) holds(one Bound) bool {
	switch {
	case b.Param != one.Param || b.Kind != one.Kind:
		return false
	case b.Kind == UnderFolder:
		return inFolder(b.Value, one.Value)
	case b.Kind == Exact, b.Kind == AtHost, b.Kind == ToRecipient, b.Kind == Mentions:
		return b.Value == one.Value
	default:
		return false // of a newer release
	}
}

// inFolder reports whether a folder is another one or in it. Both are absolute and
// clean, with the separators of this machine.
func inFolder(folder, other string) bool {
	if folder == "" || other == "" {
		return false
	}
	rest, ok := strings.CutPrefix(other, folder)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || strings.HasSuffix(folder, "/") || strings.HasSuffix(folder, `\`))
}
