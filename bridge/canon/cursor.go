package canon

import (
	"bytes"
	"encoding/json"
)

// A cursor reads canonical text. The text comes from Parse, so a cursor
// checks nothing.
type cursor struct {
	text []byte
	pos  int
}

// next returns the first byte of the value at the cursor, which tells its
// kind: { [ " t f n, or the start of a number.
func (c *cursor) next() byte { return c.text[c.pos] }

// more moves past the opening bracket or the comma and reports whether there
// is another member or element; if not, it moves past the closing bracket.
func (c *cursor) more() bool {
	b := c.text[c.pos]
	c.pos++
	if b == '{' || b == '[' {
		if end := c.text[c.pos]; end == '}' || end == ']' {
			c.pos++
			return false
		}
		return true
	}
	return b == ','
}

// name reads a member's name and moves to its value.
func (c *cursor) name() string {
	s := c.string()
	c.pos++ // :
	return s
}

// string reads the string at the cursor.
func (c *cursor) string() string {
	start := c.pos + 1
	end := bytes.IndexByte(c.text[start:], '"') + start
	if bytes.IndexByte(c.text[start:end], '\\') < 0 {
		c.pos = end + 1
		return string(c.text[start:end])
	}
	p := parser{in: c.text, pos: c.pos, valid: true}
	text, _ := p.string()
	c.pos = p.pos
	return string(text)
}

// token reads a number, true, false or null.
func (c *cursor) token() []byte {
	start := c.pos
	for c.pos < len(c.text) {
		switch c.text[c.pos] {
		case ',', ']', '}':
			return c.text[start:c.pos]
		}
		c.pos++
	}
	return c.text[start:c.pos]
}

// skip moves past the value at the cursor and returns its text.
func (c *cursor) skip() []byte {
	start := c.pos
	depth := 0
	for {
		switch c.text[c.pos] {
		case '"':
			c.skipString()
		case '{', '[':
			depth++
			c.pos++
		case '}', ']':
			depth--
			c.pos++
		case ',', ':':
			c.pos++
		default:
			c.token()
			if depth == 0 {
				return c.text[start:c.pos]
			}
			continue
		}
		if depth == 0 {
			return c.text[start:c.pos]
		}
	}
}

func (c *cursor) skipString() {
	c.pos++
	for {
		end := bytes.IndexByte(c.text[c.pos:], '"') + c.pos
		escapes := 0
		for c.text[end-1-escapes] == '\\' {
			escapes++
		}
		c.pos = end + 1
		if escapes%2 == 0 {
			return
		}
	}
}

// value reads the value at the cursor as a tree.
func (c *cursor) value() any {
	switch c.next() {
	case '{':
		object := map[string]any{}
		for c.more() {
			name := c.name()
			object[name] = c.value()
		}
		return object
	case '[':
		array := []any{}
		for c.more() {
			array = append(array, c.value())
		}
		return array
	case '"':
		return c.string()
	}
	switch token := c.token(); token[0] {
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	default:
		return json.Number(token)
	}
}
