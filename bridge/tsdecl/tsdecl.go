// Package tsdecl writes JSON Schemas as TypeScript, for a model to read: the
// type of a value (Type), the declaration of a tool (Func) and that of a saved
// script (Saved).
//
//	codemode.github__create_issue(args: {owner: string; labels?: string[]}): Promise<string>
//	codemode.run("weekly_report", input: {days: number}): Promise<unknown>
//
// A declaration informs, it does not check. Where a schema says more than a
// type can (bounds, formats, patterns) the long form says it in JSDoc; where it
// says something that no type expresses (not, if) it is left out; where it can't
// be read the type is unknown. So nothing here fails: every input, however
// malformed, deep or large, gives a bounded answer, and the same one each time.
//
// The order of keys in a schema makes no difference to what is written:
// required properties come first, in the order of the schema's "required", the
// others follow by name.
//
// A "$ref" within the schema is written in place, unless it is recursive or a
// large type that is used more than once; then it gets a name, and "type Name =
// ..." follows the declaration. A "$ref" to anywhere else is never fetched and
// is unknown.
//
// Schemas come from servers that nobody checked. Their texts can't end a
// comment, break a line or hide characters (see Plain).
package tsdecl

import (
	"encoding/json"
	"slices"
	"strings"
)

// Options say how much Func writes. The zero value is the short form: one
// line, types only.
type Options struct {
	// Doc asks for the long form: properties on lines of their own, and JSDoc
	// with descriptions, formats, defaults and bounds.
	Doc bool
	// Description stands above the declaration in the long form.
	Description string
	// Bare leaves out what the schemas say in words: descriptions, formats,
	// defaults, examples. Names and types stay.
	Bare bool
	// MaxBytes bounds the answer. Detail is dropped until it fits: texts first,
	// then the innermost types, then properties, the optional ones first.
	// 0 means 2,048, or 16,384 with Doc. Less than 300 counts as 300.
	MaxBytes int
	// Answer is the type of the answer of a tool without an output schema, as
	// Type writes it; "" means string.
	Answer string
	// Remark stands in a comment behind the type of the answer. Neither Answer
	// nor Remark counts for MaxBytes.
	Remark string
}

func (o Options) maxBytes() int {
	switch {
	case o.MaxBytes == 0 && o.Doc:
		return 16384
	case o.MaxBytes == 0:
		return 2048
	}
	return max(o.MaxBytes, 300)
}

// maxType bounds the answer of Type unless the caller does.
const maxType = 4096

// A detail is one step on the way from all that a schema says to what fits.
type detail struct {
	depth  int // nesting of objects, arrays and unions
	fields int // properties of one object
	text   int // characters of one description; 0 for no comments
}

var details = []detail{
	{16, 200, 400}, {16, 200, 120}, {16, 200, 0}, {8, 200, 0}, {6, 100, 0}, {5, 100, 0},
	{4, 100, 0}, {3, 100, 0}, {2, 100, 0}, {1, 100, 0}, {1, 30, 0}, {1, 8, 0}, {0, 0, 0},
}

// Type writes schema as one TypeScript type expression on one line of at most
// limit bytes; 0 means 4,096. A type expression can't define names, so a
// recursive reference is unknown.
func Type(schema json.RawMessage, limit int) string {
	if limit == 0 {
		limit = maxType
	}
	b := newBuilder()
	t := b.schema(schema)
	for _, d := range details {
		p := newPrinter(d, limit)
		p.expression = true
		p.typ(t, 0)
		if !p.full {
			return p.String()
		}
	}
	return unknown
}

// Func writes the declaration of codemode.<name>. A tool whose arguments are all
// optional has "args?", one that takes none has no parameter. The answer is
// Promise<T> with the type of output; without an output schema it is
// Promise<string>, for such a tool answers with text, unless the options say
// otherwise.
//
// The name is written as it is: it must be an identifier.
func Func(name string, input, output json.RawMessage, o Options) string {
	if o.Answer == "" {
		o.Answer = "string"
	}
	return declare("codemode."+name+"(", "args", input, output, o)
}

// Saved writes the declaration of a saved script: codemode.run("<name>", input).
// A script without an input schema takes no input; without an output schema
// its answer is unknown.
//
// The name is written as it is: it must be made of letters, digits, "_" and "-".
func Saved(name string, input, output json.RawMessage, o Options) string {
	if o.Answer == "" {
		o.Answer = unknown
	}
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object","additionalProperties":false}`)
	}
	return declare(`codemode.run("`+name+`"`, ", input", input, output, o)
}

// declare writes a declaration: the head up to the parameter that has a
// schema, that parameter, the answer.
func declare(head, parameter string, input, output json.RawMessage, o Options) string {
	b := newBuilder()
	b.rootName, b.args = "Args", true
	in := b.schema(input)
	var out *typ
	if len(output) > 0 {
		b.rootName, b.args = "Result", false
		out = b.schema(output)
	}
	for _, d := range details {
		if o.Bare && d.text > 0 {
			continue
		}
		p := newPrinter(d, o.maxBytes())
		p.doc = o.Doc
		if o.Doc {
			p.description(o.Description, 10*d.text)
		}
		p.str(head)
		switch {
		case takesNothing(in):
		case in.kind == anything:
			p.str(parameter + "?: Record<string, unknown>")
		case optional(in, map[*typ]bool{}):
			p.str(parameter + "?: ")
			p.typ(in, 0)
		default:
			p.str(parameter + ": ")
			p.typ(in, 0)
		}
		p.str("): Promise<")
		if out != nil {
			p.typ(out, 0)
		} else {
			p.max += len(o.Answer)
			p.str(o.Answer)
		}
		p.str(">")
		if o.Remark != "" {
			remark := " /* " + strings.ReplaceAll(o.Remark, "*/", "* /") + " */"
			p.max += len(remark)
			p.str(remark)
		}
		p.definitions()
		if !p.full {
			return p.String()
		}
	}
	return head + parameter + "?: Record<string, unknown>): Promise<unknown>"
}

// takesNothing reports whether t is an object that has no properties and allows none.
func takesNothing(t *typ) bool {
	return t.kind == object && len(t.fields) == 0 && t.index == nil && t.empty
}

// optional reports whether an empty object is a value of t. Known are the types that
// were looked at already or are being looked at: many ways may lead to one.
func optional(t *typ, known map[*typ]bool) bool {
	if is, ok := known[t]; ok {
		return is
	}
	known[t] = false
	is := false
	switch t.kind {
	case anything:
		is = true
	case object:
		is = !slices.ContainsFunc(t.fields, func(f field) bool { return !f.optional })
	case reference:
		is = optional(t.ref.body, known)
	case intersection:
		is = !slices.ContainsFunc(t.members, func(m *typ) bool { return !optional(m, known) })
	case union:
		is = slices.ContainsFunc(t.members, func(m *typ) bool { return optional(m, known) })
	}
	known[t] = is
	return is
}
