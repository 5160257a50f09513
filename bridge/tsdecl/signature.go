package tsdecl

import (
	"encoding/json"
	"strings"
)

// maxNames is how many fields of an answer Answer names.
const maxNames = 8

// Signature writes what a tool takes, on one line of at most limit bytes, as short as it
// can be without losing a name or a type: what has no type is a string.
//
//	({owner, labels?: string[], state?: "open" | "closed"})
//
// It reports whether that fits. Only what refers to itself is cut short, to unknown.
func Signature(input json.RawMessage, limit int) (text string, fits bool) {
	b := newBuilder()
	b.args = true
	in := b.schema(input)
	p := newPrinter(details[0], limit)
	p.expression, p.terse = true, true
	p.str("(")
	switch {
	case takesNothing(in):
	case in.kind == anything:
		p.str("{...}")
	default:
		p.typ(in, 0)
	}
	p.str(")")
	return p.String(), !p.full
}

// Answer names the fields of an answer with that schema, with [] behind those that are
// lists. Without a schema it is "text": such a tool answers with text.
//
//	{issues[], total}
func Answer(output json.RawMessage) string {
	if len(output) == 0 {
		return "text"
	}
	t := newBuilder().schema(output)
	for steps := 0; t.kind == reference && steps < maxNesting; steps++ {
		t = t.ref.body
	}
	if t.kind != object || len(t.fields) == 0 {
		return "{...}"
	}
	var names []string
	for i, f := range t.fields {
		if i == maxNames {
			names = append(names, "...")
			break
		}
		name := property(f.name)
		if is := f.typ; is.kind == array || is.kind == tuple {
			name += "[]"
		}
		names = append(names, name)
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// OnlyText is the only field of an answer with that schema, if it has one and that is a
// string; else it is empty.
func OnlyText(output json.RawMessage) string {
	if len(output) == 0 {
		return ""
	}
	t := newBuilder().schema(output)
	if t.kind != object || len(t.fields) != 1 || !isString(t.fields[0].typ) || property(t.fields[0].name) != t.fields[0].name {
		return ""
	}
	return t.fields[0].name
}

func isString(t *typ) bool { return t.kind == word && t.text == "string" }
