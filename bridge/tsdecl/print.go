package tsdecl

import (
	"fmt"
	"slices"
	"strings"
)

// A printer writes types with one amount of detail. It stops when it is full.
type printer struct {
	detail
	max        int
	doc        bool // the long form
	expression bool // no named types can follow
	terse      bool // what has no type is a string

	strings.Builder
	full   bool
	steps  *int // types written so far, by the copies of this printer too
	indent int
	queue  []*def // named types that were mentioned, in order
	within []*def // references written in place around here
}

// maxSteps bounds the types that one attempt writes.
const maxSteps = 20000

func newPrinter(d detail, max int) *printer {
	return &printer{detail: d, max: max, steps: new(int)}
}

func (p *printer) str(s string) {
	if p.full || p.Len()+len(s) > p.max {
		p.full = true
		return
	}
	p.WriteString(s)
}

func (p *printer) line() {
	p.str("\n")
	p.str(strings.Repeat("  ", p.indent))
}

// typ writes t. depth counts the types around it.
func (p *printer) typ(t *typ, depth int) {
	// Types that turn out to be the same are written once, so the bytes
	// alone don't bound the work.
	if *p.steps++; *p.steps > maxSteps {
		p.full = true
	}
	if p.full {
		return
	}
	switch t.kind {
	case word:
		p.str(t.text)
	case reference:
		p.reference(t.ref, depth)
	case object:
		p.object(t, depth)
	case array:
		if depth >= p.depth {
			p.str("unknown[]")
			return
		}
		p.operand(t.members[0], depth+1)
		p.str("[]")
	case tuple:
		p.tuple(t, depth)
	case union:
		p.joined(t.members, " | ", depth)
	case intersection:
		p.joined(t.members, " & ", depth)
	default:
		p.str(unknown)
	}
}

func (p *printer) reference(d *def, depth int) {
	if !p.expression && d.named() {
		if depth >= p.depth {
			p.str(unknown)
			return
		}
		if !slices.Contains(p.queue, d) {
			p.queue = append(p.queue, d)
		}
		p.str(d.name)
		return
	}
	if slices.Contains(p.within, d) || len(p.within) > maxNesting {
		p.str(unknown)
		return
	}
	p.within = append(p.within, d)
	p.typ(d.body, depth)
	p.within = p.within[:len(p.within)-1]
}

// definitions writes the named types that were mentioned, and those that they
// mention.
func (p *printer) definitions() {
	for i := 0; i < len(p.queue) && !p.full; i++ {
		d := p.queue[i]
		if p.doc {
			p.str("\n")
		} else {
			p.str("; ")
		}
		p.str("type " + d.name + " = ")
		p.typ(d.body, 0)
	}
}

// joined writes a union or an intersection, each member once.
func (p *printer) joined(members []*typ, between string, depth int) {
	if depth > p.depth {
		p.str(unknown)
		return
	}
	var seen []string
	for _, m := range members {
		// A member is printed by itself first, to see whether it was there already.
		part := *p
		part.Builder = strings.Builder{}
		part.max = p.max - p.Len()
		if k := p.inline(m).kind; k == union || k == intersection {
			part.str("(")
			part.typ(m, depth+1)
			part.str(")")
		} else {
			part.typ(m, depth)
		}
		p.queue = part.queue
		if part.full {
			p.full = true
			return
		}
		s := part.String()
		if slices.Contains(seen, s) {
			continue
		}
		if len(seen) > 0 {
			p.str(between)
		}
		seen = append(seen, s)
		p.str(s)
	}
}

// operand writes t so that "[]" can follow it.
func (p *printer) operand(t *typ, depth int) {
	if k := p.inline(t).kind; k == union || k == intersection {
		p.str("(")
		p.typ(t, depth)
		p.str(")")
		return
	}
	p.typ(t, depth)
}

// inline follows the references that are written in place.
func (p *printer) inline(t *typ) *typ {
	for steps := 0; t.kind == reference && steps <= maxNesting; steps++ {
		if !p.expression && t.ref.named() || slices.Contains(p.within, t.ref) {
			break
		}
		t = t.ref.body
	}
	return t
}

func (p *printer) tuple(t *typ, depth int) {
	if depth >= p.depth {
		p.str("unknown[]")
		return
	}
	p.str("[")
	for i, f := range t.fields {
		if i > 0 {
			p.str(", ")
		}
		if i == p.fields {
			p.str("...unknown[]]")
			return
		}
		if f.optional {
			p.operand(f.typ, depth+1)
			p.str("?")
			continue
		}
		p.typ(f.typ, depth+1)
	}
	if t.index != nil {
		if len(t.fields) > 0 {
			p.str(", ")
		}
		p.str("...")
		p.operand(t.index, depth+1)
		p.str("[]")
	}
	p.str("]")
}

func (p *printer) object(t *typ, depth int) {
	switch {
	case len(t.fields) == 0 && t.index == nil && t.empty:
		p.str("{}")
		return
	case len(t.fields) == 0 && t.index == nil, depth >= p.depth && len(t.fields) > 0:
		p.str("Record<string, unknown>")
		return
	case len(t.fields) == 0:
		p.str("Record<string, ")
		if depth >= p.depth {
			p.str(unknown)
		} else {
			p.typ(t.index, depth+1)
		}
		p.str(">")
		return
	}

	p.str("{")
	p.indent++
	for i, f := range t.fields {
		if i == p.fields {
			p.between(i)
			more := len(t.fields) - i
			p.str(fmt.Sprintf("[more: string]: unknown /* %d more properties */", more))
			break
		}
		p.between(i)
		if p.doc && p.text > 0 {
			p.note(f.note)
		}
		p.str(property(f.name))
		if f.optional {
			p.str("?")
		}
		if p.terse && isString(f.typ) {
			continue
		}
		p.str(": ")
		p.typ(f.typ, depth+1)
		if p.doc {
			p.str(";")
		}
	}
	if t.index != nil && len(t.fields) <= p.fields {
		p.between(len(t.fields))
		p.str("[key: string]: ")
		p.typ(t.index, depth+1)
		if p.doc {
			p.str(";")
		}
	}
	p.indent--
	if p.doc {
		p.line()
	}
	p.str("}")
}

// between writes what stands before the property number i.
func (p *printer) between(i int) {
	if p.doc {
		p.line()
	} else if i > 0 && p.terse {
		p.str(", ")
	} else if i > 0 {
		p.str("; ")
	}
}

// note writes the JSDoc of a property on a line above it.
func (p *printer) note(n note) {
	text := comment(n.text, p.text)
	switch {
	case text == "" && n.tags == "":
		return
	case text == "":
		text = n.tags
	case n.tags != "":
		text += " " + n.tags
	}
	p.str("/** " + text + " */")
	p.line()
}

// description writes the JSDoc of a tool, keeping its lines.
func (p *printer) description(text string, limit int) {
	if limit == 0 {
		limit = 200
	}
	cut := len(text) > 4*limit
	if cut {
		// Nobody reads on, so what follows need not be split into lines.
		text = comment(text, limit)
	}
	var lines []string
	left := limit
	for line := range strings.Lines(text) {
		if left <= 0 || len(lines) == 80 {
			lines = append(lines, "…")
			break
		}
		line = comment(line, left)
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		left -= len([]rune(line))
		lines = append(lines, line)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	switch len(lines) {
	case 0:
	case 1:
		p.str("/** " + lines[0] + " */\n")
	default:
		p.str("/**\n")
		for _, line := range lines {
			p.str(strings.TrimRight(" * "+line, " ") + "\n")
		}
		p.str(" */\n")
	}
}

// comment makes text fit for the inside of a comment: one line, and no end of
// the comment.
func comment(text string, limit int) string {
	return strings.ReplaceAll(Plain(text, limit), "*/", "* /")
}

// property writes the name of a property, quoted unless it is an identifier.
// Reserved words are legal names of properties.
func property(name string) string {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// quote writes a string literal. What can't be seen is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r > 0xffff && invisible(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		case invisible(r) || joiner(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
