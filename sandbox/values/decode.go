package values

import (
	"fmt"
	"math"
	"math/big"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// maxDepth bounds how deep JSON may nest, in both directions.
const maxDepth = 1000

// maxSafe is Number.MAX_SAFE_INTEGER.
const maxSafe = 1<<53 - 1

// A jsonError says where a text is not JSON, in V8's words.
type jsonError struct {
	reason string
	text   string
	at     int  // offset in bytes
	token  bool // a token is where it can't be; the reason says which
	bare   bool // the text ends too early
}

func (e *jsonError) Error() string {
	if e.bare {
		return LowerFirst(e.reason)
	}
	return fmt.Sprintf("%s at character %d", LowerFirst(e.reason), 1+utf8.RuneCountInString(e.text[:e.at]))
}

// Decode reads JSON straight into values of the engine. It differs from
// JSON.parse in one way: an integer that a number can't hold exactly becomes
// a BigInt.
func (r *Codec) Decode(text string) (goja.Value, error) {
	d := decoder{r: r, s: text}
	return d.decode()
}

func (d *decoder) decode() (v goja.Value, err error) {
	if len(d.s) > largeText {
		// What is decoded stays in use: collecting garbage meanwhile finds little.
		percent := 400
		if debug.SetMemoryLimit(-1) < math.MaxInt64 {
			percent = -1 // a worker: its limit of memory makes it collect
		}
		defer debug.SetGCPercent(debug.SetGCPercent(percent))
		d.strings, d.figures = new(recent), new(recent)
	}
	defer func() {
		if x := recover(); x != nil {
			e, ok := x.(*jsonError)
			if !ok {
				panic(x)
			}
			v, err = nil, e
		}
	}()
	d.space()
	v = d.value(0)
	d.space()
	if d.i < len(d.s) {
		d.fail("Unexpected non-whitespace character after JSON")
	}
	return v, nil
}

// largeText is the length beyond which a text is read with the garbage collector
// held back, and with values that occur often made once; the limit of memory holds all the same.
const largeText = 256 << 10

type decoder struct {
	r *Codec
	s string
	i int

	items     []any        // of the arrays being read, the innermost last
	prototype *goja.Object // of objects; nil before the first

	numbers bool // integers of any size are numbers, as in JSON.parse

	strings, figures *recent // nil in a short text
}

// recent are short values that were read, each in a place that its text gives. Values of the
// engine that are not objects can't be changed, so one may stand in many places. Records
// name the same people and states again and again, and a value that is made takes two allocations.
type recent [512]struct {
	text  string
	value goja.Value
}

// maxRecent bounds the text of a value that is looked for: a longer one is seldom repeated.
const maxRecent = 24

// find returns the place of a text, and the value if it is the one there.
func (r *recent) find(text string) (place int, v goja.Value) {
	h := uint32(len(text))
	for i := range len(text) {
		h = h*31 + uint32(text[i])
	}
	place = int(h % uint32(len(r)))
	if k := &r[place]; k.text == text {
		return place, k.value
	}
	return place, nil
}

// fail says what is wrong at d.i.
func (d *decoder) fail(reason string) { panic(&jsonError{reason: reason, text: d.s, at: d.i}) }

// unexpected says that what is at d.i can't be there.
func (d *decoder) unexpected() {
	if d.i >= len(d.s) {
		d.end()
	}
	panic(&jsonError{reason: "Unexpected " + d.seen(), text: d.s, at: d.i, token: true})
}

func (d *decoder) end() {
	panic(&jsonError{reason: "Unexpected end", text: d.s, at: len(d.s), bare: true})
}

// expected is like unexpected, where V8 says what it expects instead.
func (d *decoder) expected(what string) {
	if d.i >= len(d.s) {
		d.end()
	}
	d.fail("Expected " + what)
}

func (d *decoder) seen() string {
	if d.i >= len(d.s) {
		return "end"
	}
	c, _ := utf8.DecodeRuneInString(d.s[d.i:])
	return strconv.QuoteRune(c)
}

func (d *decoder) space() {
	for d.i < len(d.s) {
		switch d.s[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

func (d *decoder) peek() byte {
	if d.i >= len(d.s) {
		d.end()
	}
	return d.s[d.i]
}

func (d *decoder) value(depth int) goja.Value {
	if depth > maxDepth {
		d.fail(fmt.Sprintf("More than %d levels", maxDepth))
	}
	c := d.peek()
	switch {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		return d.string()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	}
	switch c {
	case 't':
		d.word("true")
		return d.r.VM.ToValue(true)
	case 'f':
		d.word("false")
		return d.r.VM.ToValue(false)
	case 'n':
		d.word("null")
		return goja.Null()
	}
	d.unexpected()
	return nil
}

// word reads a keyword, or fails where the text differs from it.
func (d *decoder) word(word string) {
	for i := range len(word) {
		if d.i >= len(d.s) || d.s[d.i] != word[i] {
			d.unexpected()
		}
		d.i++
	}
}

func (d *decoder) object(depth int) goja.Value {
	d.i++
	if d.prototype == nil {
		d.prototype = d.r.VM.NewObject().Prototype()
	}
	// Its prototype comes last: without one, setting a key is defining it. A key must never run
	// a setter (__proto__, or one that the script put on Object.prototype), and for
	// the engine to define one takes twice the allocations.
	o := d.r.VM.CreateObject(nil)
	d.space()
	if d.peek() == '}' {
		d.i++
		_ = o.SetPrototype(d.prototype) // an extensible object takes it
		return o
	}
	for first := true; ; first = false {
		d.space()
		switch {
		case d.peek() == '"':
		case first:
			d.expected("property name or '}'")
		default:
			d.expected("double-quoted property name")
		}
		key, wide := d.text()
		if wide != nil {
			key = string(utf16.Decode(wide))
		}
		d.space()
		if d.peek() != ':' {
			d.expected("':' after property name")
		}
		d.i++
		d.space()
		v := d.value(depth + 1)
		_ = o.Set(key, v) // as above
		d.space()
		switch d.peek() {
		case ',':
			d.i++
		case '}':
			d.i++
			_ = o.SetPrototype(d.prototype)
			return o
		default:
			d.expected("',' or '}' after property value")
		}
	}
}

func (d *decoder) array(depth int) goja.Value {
	d.i++
	begin := len(d.items)
	d.space()
	if d.peek() == ']' {
		d.i++
		return d.r.VM.NewArray()
	}
	for {
		d.space()
		d.items = append(d.items, d.value(depth+1))
		d.space()
		switch d.peek() {
		case ',':
			d.i++
		case ']':
			d.i++
			a := d.r.VM.NewArray(d.items[begin:]...)
			clear(d.items[begin:])
			d.items = d.items[:begin]
			return a
		default:
			d.expected("',' or ']' after array element")
		}
	}
}

func (d *decoder) string() goja.Value {
	s, wide := d.text()
	if wide != nil {
		return goja.StringFromUTF16(wide)
	}
	if d.strings == nil || len(s) > maxRecent {
		return d.r.VM.ToValue(s)
	}
	place, v := d.strings.find(s)
	if v == nil {
		v = d.r.VM.ToValue(s)
		d.strings[place].text, d.strings[place].value = s, v
	}
	return v
}

// text reads a string. wide is set when it holds half of a surrogate pair,
// which Go's strings can't.
func (d *decoder) text() (s string, wide []uint16) {
	d.i++
	start := d.i
	for d.i < len(d.s) {
		switch c := d.s[d.i]; {
		case c == '"':
			s = d.s[start:d.i]
			d.i++
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < ' ':
			d.fail("Bad control character in string literal")
		default:
			d.i++
		}
	}
	d.fail("Unterminated string")
	return "", nil
}

// escaped reads the rest of the string that begins at start, from its first
// backslash on.
func (d *decoder) escaped(start int) (string, []uint16) {
	var t wideText
	t.b.WriteString(d.s[start:d.i])
	for d.i < len(d.s) {
		c := d.s[d.i]
		if c != '\\' {
			t.flush()
			switch {
			case c == '"':
				d.i++
				if t.lone {
					return "", wtf16(t.b.String())
				}
				return t.b.String(), nil
			case c < ' ':
				d.fail("Bad control character in string literal")
			}
			t.b.WriteByte(c)
			d.i++
			continue
		}
		d.i++
		e := d.peek()
		d.i++
		if e == 'u' {
			t.unit(d.unit())
			continue
		}
		t.flush()
		i := strings.IndexByte(`"\/bfnrt`, e)
		if i < 0 {
			d.i--
			d.fail("Bad escaped character")
		}
		t.b.WriteByte("\"\\/\b\f\n\r\t"[i])
	}
	d.fail("Unterminated string")
	return "", nil
}

// unit reads the four digits of a \u escape.
func (d *decoder) unit() uint16 {
	if d.i+4 > len(d.s) {
		d.fail("Bad Unicode escape")
	}
	n, err := strconv.ParseUint(d.s[d.i:d.i+4], 16, 16)
	if err != nil {
		d.fail("Bad Unicode escape")
	}
	d.i += 4
	return uint16(n)
}

// A wideText collects a string in WTF-8, so that half of a surrogate pair survives
// until the end.
type wideText struct {
	b    strings.Builder
	half uint16 // the first of a pair, not written yet; 0 if none
	lone bool   // there is a half without the other
}

// flush writes a half that nothing follows.
func (t *wideText) flush() {
	if t.half != 0 {
		t.writeLone(t.half)
		t.half = 0
	}
}

func (t *wideText) writeLone(u uint16) {
	t.b.Write([]byte{0xe0 | byte(u>>12), 0x80 | byte(u>>6)&0x3f, 0x80 | byte(u)&0x3f})
	t.lone = true
}

// unit adds one UTF-16 unit.
func (t *wideText) unit(u uint16) {
	switch {
	case u >= 0xdc00 && u < 0xe000 && t.half != 0:
		t.b.WriteRune(utf16.DecodeRune(rune(t.half), rune(u)))
		t.half = 0
	case u >= 0xd800 && u < 0xdc00:
		t.flush()
		t.half = u
	case u >= 0xdc00 && u < 0xe000:
		t.writeLone(u)
	default:
		t.flush()
		t.b.WriteRune(rune(u))
	}
}

// wtf16 turns a text in which lone surrogates are written as three bytes into
// UTF-16.
func wtf16(s string) []uint16 {
	var out []uint16
	for i := 0; i < len(s); {
		if s[i] == 0xed && i+2 < len(s) && s[i+1] >= 0xa0 {
			out = append(out, uint16(s[i]&0xf)<<12|uint16(s[i+1]&0x3f)<<6|uint16(s[i+2]&0x3f))
			i += 3
			continue
		}
		c, n := utf8.DecodeRuneInString(s[i:])
		out = utf16.AppendRune(out, c)
		i += n
	}
	return out
}

func (d *decoder) number() goja.Value {
	start := d.i
	if d.s[d.i] == '-' {
		d.i++
	}
	digits := d.digits()
	if digits == 0 {
		d.fail("No number after minus sign")
	}
	if digits > 1 && d.s[d.i-digits] == '0' {
		d.i -= digits - 1
		d.fail("Unexpected number")
	}
	whole := true
	if d.i < len(d.s) && d.s[d.i] == '.' {
		whole = false
		d.i++
		if d.digits() == 0 {
			d.fail("Unterminated fractional number")
		}
	}
	if d.i < len(d.s) && (d.s[d.i] == 'e' || d.s[d.i] == 'E') {
		whole = false
		d.i++
		if d.i < len(d.s) && (d.s[d.i] == '+' || d.s[d.i] == '-') {
			d.i++
		}
		if d.digits() == 0 {
			d.fail("Exponent part is missing a number")
		}
	}
	text := d.s[start:d.i]
	if d.figures == nil || len(text) > maxRecent {
		return d.numeral(start, digits, whole)
	}
	place, v := d.figures.find(text)
	if v == nil {
		v = d.numeral(start, digits, whole)
		d.figures[place].text, d.figures[place].value = text, v
	}
	return v
}

// numeral returns the number from start to d.i, of so many digits before its point.
func (d *decoder) numeral(start, digits int, whole bool) goja.Value {
	text := d.s[start:d.i]
	if whole && !(d.numbers && digits > 15) {
		if text == "-0" {
			return d.r.VM.ToValue(math.Copysign(0, -1))
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= -maxSafe && n <= maxSafe {
			return d.r.VM.ToValue(n)
		}
		if digits > maxDigits {
			d.i = start
			d.fail(fmt.Sprintf("An integer of %d digits", digits))
		}
		n, _ := new(big.Int).SetString(text, 10)
		return d.r.bigInt(n)
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range is Infinity, as in JSON.parse
	return d.r.VM.ToValue(f)
}

// maxDigits bounds an integer: reading one takes time quadratic in its length.
const maxDigits = 10_000

func (d *decoder) digits() (n int) {
	for d.i < len(d.s) && d.s[d.i] >= '0' && d.s[d.i] <= '9' {
		d.i++
		n++
	}
	return n
}

// bigInt returns a BigInt that JSON.stringify writes as a string of its digits:
// without the toJSON of OnBigInt it would throw at one that a script only passes on.
func (r *Codec) bigInt(n *big.Int) goja.Value {
	if r.OnBigInt != nil {
		r.OnBigInt()
		r.OnBigInt = nil
	}
	return r.VM.ToValue(n)
}
