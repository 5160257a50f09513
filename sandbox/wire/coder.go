package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A coder writes or reads one header. A struct says once, in its method code,
// what its header looks like, for both directions: what is written and what
// is read cannot differ, and each bound is beside its field.
//
// The first error stays; what is read after it is of no use. A coder that
// writes changes nothing of what it is given.
type coder struct {
	b       []byte // written so far, or not yet read
	reading bool
	err     error
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.b = c.b[:0]
}

// take returns the next n bytes to read, or nil if there are fewer.
func (c *coder) take(n int) []byte {
	if c.err != nil || n > len(c.b) {
		c.fail("a header that ends too early")
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

// uvarint codes a number in its shortest form.
func (c *coder) uvarint(v uint64) uint64 {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, v)
		return v
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case c.err != nil || n == 0:
		c.fail("a header that ends too early")
		return 0
	case n < 0 || n > 1 && c.b[n-1] == 0:
		c.fail("a number that is not in its shortest form")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// number codes a number between low, which is not negative, and high.
func number[T ~int | ~int64 | ~uint64](c *coder, what string, p *T, low, high T) {
	v := *p
	if c.reading {
		u := c.uvarint(0)
		if v = T(u); uint64(v) != u || v < 0 {
			c.fail("%s of %d", what, u)
			return
		}
	}
	if c.err == nil && (v < low || v > high) {
		c.fail("%s of %d", what, v)
	}
	if c.reading {
		*p = v
	} else {
		c.uvarint(uint64(v))
	}
}

// flag codes a bool as one byte, 0 or 1.
func (c *coder) flag(p *bool) {
	if !c.reading {
		n := byte(0)
		if *p {
			n = 1
		}
		c.b = append(c.b, n)
		return
	}
	if b := c.take(1); b != nil {
		if *p = b[0] == 1; b[0] > 1 {
			c.fail("a flag of %d", b[0])
		}
	}
}

// word codes one of the given words as its index.
func word[T ~string](c *coder, what string, p *T, words []T) {
	if c.reading {
		if b := c.take(1); b != nil {
			if int(b[0]) >= len(words) {
				c.fail("an unknown %s %d", what, b[0])
				return
			}
			*p = words[b[0]]
		}
		return
	}
	for i, w := range words {
		if w == *p {
			c.b = append(c.b, byte(i))
			return
		}
	}
	c.fail("an unknown %s %q", what, clipText(string(*p), 32))
}

// name codes a text that means something to the other side: it is never cut.
func (c *coder) name(what string, p *string, most int) {
	if c.reading {
		*p = string(c.bytes(what, nil, most))
		if !utf8.ValidString(*p) {
			c.fail("%s that is not UTF-8", what)
		}
		return
	}
	s := strings.ToValidUTF8(*p, "\ufffd")
	if len(s) > most {
		c.fail("%s of %d bytes", what, len(s))
		return
	}
	c.uvarint(uint64(len(s)))
	c.b = append(c.b, s...)
}

// prose codes a text that someone will read. What is too long is cut when it
// is written, and refused when it is read.
func (c *coder) prose(what string, p *string, most int) {
	if c.reading {
		c.name(what, p, most)
		return
	}
	s := clipText(strings.ToValidUTF8(*p, "\ufffd"), most)
	c.name(what, &s, most)
}

// json codes a JSON value, or none.
func (c *coder) json(what string, p *json.RawMessage, most int) {
	b := c.bytes(what, *p, most)
	if len(b) > 0 && c.err == nil && !json.Valid(b) {
		c.fail("%s that is not JSON", what)
	}
	if c.reading && len(b) > 0 {
		*p = append(json.RawMessage(nil), b...)
	}
}

// bytes codes a length and as many bytes. What is read belongs to the frame.
func (c *coder) bytes(what string, b []byte, most int) []byte {
	n := c.uvarint(uint64(len(b)))
	if n > uint64(most) {
		c.fail("%s of %d bytes", what, n)
		return nil
	}
	if c.reading {
		return c.take(int(n))
	}
	c.b = append(c.b, b...)
	return b
}

// time codes a moment, to the nanosecond, in UTC.
func (c *coder) time(p *time.Time) {
	if !c.reading {
		if y := p.UTC().Year(); y < 1 || y > 9999 {
			c.fail("a time in the year %d", y)
			return
		}
		c.uvarint(uint64(p.Unix() - firstSecond))
		c.uvarint(uint64(p.Nanosecond()))
		return
	}
	second, nano := c.uvarint(0), c.uvarint(0)
	if second > lastSecond-firstSecond || nano >= uint64(time.Second) {
		c.fail("a time out of range")
		return
	}
	*p = time.Unix(int64(second)+firstSecond, int64(nano)).UTC()
}

// The seconds of the years 1 to 9999, as time.Unix counts them.
const firstSecond, lastSecond = -62135596800, 253402300799

// list codes a count and as many items.
func list[T any](c *coder, what string, p *[]T, most int, item func(*T)) {
	if c.reading {
		*p = nil
	}
	n := c.uvarint(uint64(len(*p)))
	if n > uint64(most) {
		c.fail("%d %s", n, what)
	}
	for i := 0; i < int(n) && c.err == nil; i++ {
		if c.reading {
			*p = append(*p, *new(T)) // as they come: a count is only a claim
		}
		item(&(*p)[i])
	}
}

// optional codes whether there is a value, and then the value.
func optional[T any](c *coder, p **T, value func(*T)) {
	there := *p != nil
	c.flag(&there)
	if !there || c.err != nil {
		return
	}
	if c.reading {
		*p = new(T)
	}
	value(*p)
}
