package canon

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DisplayOptions say how much Display shows. The zero value means the
// defaults that stand at each field; a number below 1 means the default too.
type DisplayOptions struct {
	// Hidden names more members whose values are hidden, each with the text
	// to show in place of the value; an empty text means the default one. A
	// name matches in any spelling: only letters and digits count, not their
	// case. These add to the built-in names and never replace them.
	Hidden map[string]string
	// FingerprintKey, if not empty, adds the Fingerprint of each hidden value
	// to the text shown in its place.
	FingerprintKey []byte

	MaxString int // characters shown of one string; 2,000
	MaxArray  int // elements shown of one array; 50
	MaxObject int // members shown of one object; 50
	MaxDepth  int // levels shown, the outermost object included; 8
	MaxBytes  int // length of Shown.JSON; 32 KB, and at least 1 KB + 100 bytes a level
}

// Shown is arguments as people may see them.
type Shown struct {
	// JSON is a valid JSON object in the order of the canonical text, without
	// white space between tokens. It consists of characters that Escape
	// leaves alone. A line feed or a tab in an argument is \n or \t here, so a
	// decoded string can have several lines, and nothing else unseen.
	JSON json.RawMessage `json:"args"`
	// Hidden counts the values, and the parts of strings, that are hidden.
	Hidden int `json:"hidden,omitempty"`
	// Cut counts the places where something was left out for its length.
	Cut int `json:"cut,omitempty"`
}

// Display renders a for people and for the log. It never fails, and what it
// shows is never longer than MaxBytes.
//
// Hidden are the values of members named like a secret (see secretName; also
// {"name": "API_KEY", "value": ...}, ["Authorization", ...] and the element
// after "--password"), unless they are null, true, false, empty, or a number
// named tokens; and the parts of any string that Redact hides. In their place
// stands [hidden], [hidden: looks like ...], or the text of
// DisplayOptions.Hidden.
//
// A string that is too long ends in "… 1,482 characters in all", an array in
// an element "… 120 elements in all", an object in a member
// "…": "… 75 members in all"; what lies too deep is "… object, 3 members".
//
// Nothing in the arguments can pass for these texts: where they hold … or
// [hidden themselves, that character is written out, as are the unseen ones,
// in the form that Escape describes.
func Display(a Args, o DisplayOptions) Shown {
	d := display{cursor: cursor{text: a.Bytes()}, hider: newHider(o)}
	d.maxString = orDefault(o.MaxString, 2000)
	d.maxArray = orDefault(o.MaxArray, 50)
	d.maxObject = orDefault(o.MaxObject, 50)
	d.maxDepth = min(orDefault(o.MaxDepth, 8), MaxDepth)
	d.maxBytes = max(orDefault(o.MaxBytes, 32<<10), 1<<10+reserve*d.maxDepth)
	d.value(0)
	return Shown{JSON: d.out, Hidden: d.hidden, Cut: d.cut}
}

func orDefault(n, def int) int {
	if n < 1 {
		return def
	}
	return n
}

// cutMark begins every text that says that something was left out.
const cutMark = '…'

const (
	// reserve is the room kept for the end of each open container: a comma,
	// the longest text about what was left out, and the closing bracket.
	reserve = 100
	// smallest is room enough for any value in its shortest form and the
	// comma after it: a mark with a fingerprint, an integer cut short, a
	// string of which nothing is shown.
	smallest = 200
	// maxShownName is how many characters are shown of a member's name, a
	// number, or a text of DisplayOptions.Hidden.
	maxShownName = 100
)

// A display walks canonical text and writes what may be seen of it.
type display struct {
	cursor
	*hider
	out         []byte
	hidden, cut int

	maxString, maxArray, maxObject, maxDepth, maxBytes int
}

// room is how much may be written at a depth, so that every open container
// can still be ended.
func (d *display) room(depth int) int { return d.maxBytes - reserve*depth - len(d.out) }

// value shows the value at the cursor, which stands in depth containers.
func (d *display) value(depth int) {
	switch d.next() {
	case '{':
		if depth >= d.maxDepth {
			d.tooDeep("object", "member")
			return
		}
		d.object(depth + 1)
	case '[':
		if depth >= d.maxDepth {
			d.tooDeep("array", "element")
			return
		}
		d.array(depth + 1)
	case '"':
		d.text(d.string(), d.maxString, depth)
	default:
		token := d.token()
		if len(token) > maxShownName {
			d.text(string(token), maxShownName, depth)
			return
		}
		d.out = append(d.out, token...)
	}
}

func (d *display) object(depth int) {
	d.out = append(d.out, '{')
	names := map[string]bool{} // as shown
	pair := ""                 // what "name" says in {"name": ..., "value": ...}
	for n := 0; d.more(); n++ {
		name := d.string()
		d.pos++ // :
		if n == d.maxObject || d.room(depth) < smallest+3*maxShownName {
			d.skip()
			total := n + 1 + d.rest(true)
			d.comma(n)
			d.out = append(d.out, `"…":"`...)
			d.leftOut(total, "member")
			d.out = append(d.out, '"')
			break
		}
		d.comma(n)
		d.name(name, n, names)
		d.out = append(d.out, ':')
		mark, hide := d.hides(name)
		switch lower := strings.ToLower(name); {
		case pairNames[lower]:
			if d.next() == '"' && !hide {
				c := d.cursor
				pair = c.string()
			}
		case valueNames[lower]:
			if !hide && pair != "" && len(pair) <= maxName {
				mark, hide = d.hides(pair)
				name = pair
			}
		}
		d.member(name, mark, hide, depth)
	}
	d.out = append(d.out, '}')
}

// name shows the name of member n. Names that are cut or hidden can look
// alike; the later one is then numbered.
func (d *display) name(name string, n int, shown map[string]bool) {
	start := len(d.out)
	d.quoted(name, maxShownName, start+3*maxShownName, false)
	if s := string(d.out[start:]); shown[s] {
		d.out = append(d.out[:len(d.out)-1], " … "+strconv.Itoa(n+1)+`"`...)
	} else {
		shown[s] = true
	}
}

// member shows the value at the cursor, or hides it.
func (d *display) member(name, mark string, hide bool, depth int) {
	if !hide {
		d.value(depth)
		return
	}
	switch c := d.next(); {
	case mark != "": // asked for by the configuration: no exception
		d.hide(mark, depth)
		return
	case c == 't' || c == 'f' || c == 'n':
	case (c == '-' || '0' <= c && c <= '9') && countsTokens(name):
	case c == '"' && d.cursor.text[d.pos+1] == '"':
	case (c == '{' || c == '[') && d.cursor.text[d.pos+1] == c+2: // {} or []
	default:
		d.hide(markValue, depth)
		return
	}
	d.value(depth)
}

// hide skips the value at the cursor and shows mark in its place.
func (d *display) hide(mark string, depth int) {
	var secret string
	if d.next() == '"' {
		secret = d.string()
	} else {
		secret = string(d.skip())
	}
	d.hidden++
	d.ownText(d.mark(CutBytes(mark, maxShownName), secret), depth)
}

// ownText shows a text of ours or of the configuration.
func (d *display) ownText(s string, depth int) {
	d.out = append(d.out, '"')
	e := eye{}
	for i := 0; i < len(s) && d.room(depth) > reserve; {
		form, size := e.look(s, i)
		d.out = appendForm(d.out, form)
		i += size
	}
	d.out = append(d.out, '"')
}

func (d *display) array(depth int) {
	d.out = append(d.out, '[')
	before := "" // the element before, if it is a string
	for n := 0; d.more(); n++ {
		if n == d.maxArray || d.room(depth) < smallest {
			d.skip()
			total := n + 1 + d.rest(false)
			d.comma(n)
			d.out = append(d.out, '"')
			d.leftOut(total, "element")
			d.out = append(d.out, '"')
			break
		}
		d.comma(n)
		mark, hide, name := "", false, before
		if before != "" && len(before) <= maxName {
			flag := strings.HasPrefix(before, "-") && !strings.ContainsAny(before, "= ")
			if flag || n == 1 && d.lastOfArray() {
				mark, hide = d.hides(before)
			}
		}
		before = ""
		if d.next() == '"' {
			c := d.cursor
			before = c.string()
		}
		d.member(name, mark, hide, depth)
	}
	d.out = append(d.out, ']')
}

// lastOfArray reports whether the value at the cursor is the last of its
// array.
func (d *display) lastOfArray() bool {
	c := d.cursor
	c.skip()
	return c.text[c.pos] == ']'
}

func (d *display) comma(n int) {
	if n > 0 {
		d.out = append(d.out, ',')
	}
}

// rest skips what is left of the container at the cursor, to behind its
// closing bracket, and returns how many members or elements that was.
func (d *display) rest(object bool) int {
	n := 0
	for ; d.more(); n++ {
		if object {
			d.skipString()
			d.pos++ // :
		}
		d.skip()
	}
	return n
}

func (d *display) leftOut(n int, what string) {
	d.cut++
	d.out = append(d.out, "… "...)
	d.out = appendCount(d.out, n, what)
	d.out = append(d.out, " in all"...)
}

// tooDeep shows how large the container at the cursor is.
func (d *display) tooDeep(kind, part string) {
	n := d.rest(kind == "object")
	d.cut++
	d.out = append(d.out, `"… `+kind+", "...)
	d.out = appendCount(d.out, n, part)
	d.out = append(d.out, '"')
}

// text shows a string, at most max characters of it.
func (d *display) text(s string, max, depth int) {
	d.quoted(s, max, len(d.out)+d.room(depth), true)
}

// quoted shows s as a JSON string: at most max characters, and ending before
// limit.
func (d *display) quoted(s string, max, limit int, lines bool) {
	shown := s
	if len(s) > max {
		shown = prefix(s, max)
	}
	var spans []span
	if len(s) > 3 {
		spans = d.spans(window(s, len(shown)))
	}
	d.out = append(d.out, '"')
	limit -= reserve // for what is written after the loop
	e := eye{lines: lines, marks: true}
	i := 0
	for i < len(shown) {
		if len(spans) > 0 && spans[0].start == i {
			mark := d.mark(CutBytes(spans[0].mark, maxShownName), spans[0].secret(s))
			if len(d.out)+2*len(mark) > limit {
				break
			}
			d.hidden++
			d.out = appendForm(d.out, Escape(mark))
			e.base = false
			i = spans[0].end
			spans = spans[1:]
			continue
		}
		form, size := e.look(s, i)
		if len(d.out)+2*len(form) > limit {
			break
		}
		d.out = appendForm(d.out, form)
		i += size
	}
	if i < len(s) {
		d.leftOut(utf8.RuneCountInString(s), "character")
	}
	d.out = append(d.out, '"')
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// appendForm appends what an eye made of a character as part of a JSON
// string. Of all that an eye lets through, these four need escaping.
func appendForm(b []byte, form string) []byte {
	for i := range len(form) {
		switch c := form[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, c)
		}
	}
	return b
}
