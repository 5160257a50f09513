package canon

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canonical reads one JSON object from raw and returns its canonical text.
func canonical(raw []byte) ([]byte, error) {
	p := parser{in: raw, out: make([]byte, 0, len(raw)), valid: utf8.Valid(raw)}
	if bytes.HasPrefix(raw, []byte("\uFEFF")) {
		return nil, p.fail("byte order mark before the value")
	}
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] != '{' {
		return nil, p.fail("arguments must be an object")
	}
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.in) {
		return nil, p.fail("unexpected text after the object")
	}
	return p.out, nil
}

// A parser reads JSON and writes its canonical form in the same pass. Values
// are written where they are read; the members of an object are put in order
// when it ends, and only if they are not.
type parser struct {
	in    []byte
	pos   int
	out   []byte
	valid bool // in is valid UTF-8; else the string reader looks for where it is not

	// members of all objects that are open, innermost last; each object
	// remembers where its own begin.
	members []member
	scratch []byte

	// path to the value being read, for errors.
	path []step
}

// A member is one name and value of an object, as written to out.
type member struct {
	name       []byte // decoded
	start, end int    // of `"name":value` in out
}

// A step is one part of the path: a name, or an index if name is nil.
type step struct {
	name  []byte
	index int
}

func (p *parser) fail(reason string) *Error {
	var b strings.Builder
	for _, s := range p.path {
		b.WriteByte('/')
		if s.name == nil {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		b.WriteString(pointerEscaper.Replace(string(s.name)))
	}
	return &Error{Path: b.String(), Reason: reason, Offset: p.pos}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func (p *parser) failEnd() *Error { return p.fail("unexpected end of the text") }

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// value reads one value that stands inside depth containers. The position is
// on its first byte.
func (p *parser) value(depth int) error {
	if p.pos >= len(p.in) {
		return p.failEnd()
	}
	switch c := p.in[p.pos]; {
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			return p.fail("nested deeper than " + strconv.Itoa(MaxDepth) + " levels")
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		_, err := p.string()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	case c == 'N' || c == 'I':
		return p.fail("NaN and Infinity are not JSON")
	default:
		return p.fail("expected a value")
	}
}

func (p *parser) literal(word string) error {
	if !bytes.HasPrefix(p.in[p.pos:], []byte(word)) {
		return p.fail("expected a value")
	}
	p.pos += len(word)
	p.out = append(p.out, word...)
	return nil
}

func (p *parser) array(depth int) error {
	p.pos++
	p.out = append(p.out, '[')
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] == ']' {
		p.pos++
		p.out = append(p.out, ']')
		return nil
	}
	at := len(p.path)
	p.path = append(p.path, step{})
	for i := 0; ; i++ {
		p.path[at].index = i
		p.space()
		if err := p.value(depth); err != nil {
			return err
		}
		p.space()
		if p.pos >= len(p.in) {
			return p.failEnd()
		}
		switch p.in[p.pos] {
		case ',':
			p.pos++
			p.out = append(p.out, ',')
		case ']':
			p.pos++
			p.out = append(p.out, ']')
			p.path = p.path[:at]
			return nil
		default:
			return p.fail("expected , or ] after the element")
		}
	}
}

func (p *parser) object(depth int) error {
	p.pos++
	p.out = append(p.out, '{')
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] == '}' {
		p.pos++
		p.out = append(p.out, '}')
		return nil
	}
	first := len(p.members)
	at := len(p.path)
	for {
		p.space()
		if p.pos >= len(p.in) {
			return p.failEnd()
		}
		if p.in[p.pos] != '"' {
			return p.fail("expected a name in double quotes")
		}
		start := len(p.out)
		name, err := p.string()
		if err != nil {
			return err
		}
		p.path = append(p.path, step{name: name})
		if string(name) == "__proto__" {
			return p.fail(`the name "__proto__" is not accepted`)
		}
		p.space()
		if p.pos >= len(p.in) {
			return p.failEnd()
		}
		if p.in[p.pos] != ':' {
			return p.fail("expected : after the name")
		}
		p.pos++
		p.out = append(p.out, ':')
		p.space()
		if err := p.value(depth); err != nil {
			return err
		}
		p.members = append(p.members, member{name: name, start: start, end: len(p.out)})
		p.space()
		if p.pos >= len(p.in) {
			return p.failEnd()
		}
		switch p.in[p.pos] {
		case ',':
			p.pos++
			p.out = append(p.out, ',')
			p.path = p.path[:at]
		case '}':
			p.pos++
			p.path = p.path[:at]
			if err := p.order(p.members[first:]); err != nil {
				return err
			}
			p.members = p.members[:first]
			p.out = append(p.out, '}')
			return nil
		default:
			return p.fail("expected , or } after the member")
		}
	}
}

// order puts the members of the object that ends at len(p.out) in canonical
// order and refuses names that occur twice.
func (p *parser) order(members []member) error {
	byName := func(a, b member) int { return compareUTF16(a.name, b.name) }
	sorted := slices.IsSortedFunc(members, byName)
	begin := members[0].start
	if !sorted {
		slices.SortFunc(members, byName)
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].name, members[i].name) {
			p.path = append(p.path, step{name: members[i].name})
			return p.fail("the name occurs twice in its object")
		}
	}
	if sorted {
		return nil
	}
	p.scratch = append(p.scratch[:0], p.out[begin:]...)
	p.out = p.out[:begin]
	for i, m := range members {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, p.scratch[m.start-begin:m.end-begin]...)
	}
	return nil
}

// compareUTF16 compares two strings of valid UTF-8 by their UTF-16 code
// units, as RFC 8785 section 3.2.3 demands. That is the order of the bytes,
// except that U+10000 and above (lead byte 0xF0 and up; surrogates, from
// 0xD800, in UTF-16) come before U+E000 to U+FFFF (lead bytes 0xEE, 0xEF).
func compareUTF16(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// plain tells the bytes of a string that stand for themselves in input and
// output.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// string reads a string, writes it, and returns its decoded text, which is
// valid until the end of the parse.
func (p *parser) string() ([]byte, error) {
	p.pos++
	start := p.pos
	i := start
	for i < len(p.in) && plain[p.in[i]] {
		i++
	}
	if i < len(p.in) && p.in[i] == '"' { // no escapes: most strings
		text := p.in[start:i]
		if !p.valid && !utf8.Valid(text) {
			return nil, p.fail("invalid UTF-8 in a string")
		}
		p.out = append(p.out, p.in[start-1:i+1]...)
		p.pos = i + 1
		return text, nil
	}
	text := make([]byte, 0, i-start+32)
	for {
		text = append(text, p.in[start:i]...)
		p.pos = i
		if i >= len(p.in) {
			return nil, p.failEnd()
		}
		switch c := p.in[i]; {
		case c == '"':
			if !p.valid && !utf8.Valid(text) {
				return nil, p.fail("invalid UTF-8 in a string")
			}
			p.pos = i + 1
			p.out = appendString(p.out, text)
			return text, nil
		case c < 0x20:
			return nil, p.fail("control character in a string")
		}
		var err error
		if text, err = p.escape(text); err != nil {
			return nil, err
		}
		start = p.pos
		i = start
		for i < len(p.in) && plain[p.in[i]] {
			i++
		}
	}
}

// escape reads one escape sequence and appends what it stands for to text.
func (p *parser) escape(text []byte) ([]byte, error) {
	if p.pos+1 >= len(p.in) {
		return nil, p.failEnd()
	}
	c := p.in[p.pos+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r, ok := p.hex(p.pos)
		if !ok {
			return nil, p.fail(`expected four hexadecimal digits after \u`)
		}
		size := 6
		if 0xD800 <= r && r <= 0xDFFF {
			low, ok := p.hex(p.pos + 6)
			if r >= 0xDC00 || !ok || low < 0xDC00 || low > 0xDFFF {
				return nil, p.fail("lone surrogate in a string")
			}
			r = (r-0xD800)<<10 + (low - 0xDC00) + 0x10000
			size = 12
		}
		p.pos += size
		return utf8.AppendRune(text, r), nil
	default:
		return nil, p.fail("unknown escape in a string")
	}
	p.pos += 2
	return append(text, c), nil
}

// hex reads the \uXXXX at i.
func (p *parser) hex(i int) (rune, bool) {
	if i+6 > len(p.in) || p.in[i] != '\\' || p.in[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.in[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendString appends text to b as a canonical JSON string.
func appendString[T string | []byte](b []byte, text T) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if plain[c] {
			continue
		}
		b = append(b, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

// number reads a number by the grammar of RFC 8259 and writes it.
func (p *parser) number() error {
	start := p.pos
	if p.in[p.pos] == '-' {
		p.pos++
	}
	if p.pos < len(p.in) && p.in[p.pos] == 'I' {
		return p.fail("NaN and Infinity are not JSON")
	}
	first := p.pos
	integer := p.digits()
	switch {
	case integer == 0:
		return p.fail("expected a digit")
	case integer > 1 && p.in[first] == '0':
		return p.fail("number with a leading zero")
	}
	exact := true
	if p.pos < len(p.in) && p.in[p.pos] == '.' {
		exact = false
		p.pos++
		if p.digits() == 0 {
			return p.fail("expected a digit after the point")
		}
	}
	if p.pos < len(p.in) && p.in[p.pos]|0x20 == 'e' {
		exact = false
		p.pos++
		if p.pos < len(p.in) && (p.in[p.pos] == '+' || p.in[p.pos] == '-') {
			p.pos++
		}
		if p.digits() == 0 {
			return p.fail("expected a digit in the exponent")
		}
	}
	text := p.in[start:p.pos]
	if exact && integer <= 308 { // 10^308 is below the largest double
		if string(text) == "-0" {
			text = text[1:]
		}
		p.out = append(p.out, text...)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return p.fail("number too large")
	}
	if exact {
		p.out = append(p.out, text...)
		return nil
	}
	p.out = appendFloat(p.out, f)
	return nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.in) && '0' <= p.in[p.pos] && p.in[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

// appendFloat appends f as ECMAScript's Number::toString prints it, which is
// what RFC 8785 section 3.2.2.3 asks for.
func appendFloat(b []byte, f float64) []byte {
	if f == 0 { // also -0
		return append(b, '0')
	}
	abs := math.Abs(f)
	if 1e-6 <= abs && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	// Go writes at least two digits of exponent, ECMAScript none too many.
	if n := len(b); b[n-2] == '0' && (b[n-3] == '-' || b[n-3] == '+') {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}
