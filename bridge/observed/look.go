package observed

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxLook is how many bytes of one answer are read: the beginning tells.
const maxLook = 32 << 10

// look returns the shape of the JSON array or object in text, and nil if text
// is neither. Of a long text only the beginning and the last byte are read, so
// that a large answer costs no more than a small one.
func look[T ~string | ~[]byte](text T) *shape {
	from, to := 0, len(text)
	for from < to && space(text[from]) {
		from++
	}
	for to > from && space(text[to-1]) {
		to--
	}
	if from == to || text[from] != '{' && text[from] != '[' {
		return nil
	}
	l := looker{text: string(text[from:min(to, from+maxLook)])}
	if cut := to-from > maxLook; cut && text[to-1] != text[from]+2 || !cut && !json.Valid([]byte(l.text)) {
		return nil // in ASCII "]" follows "[" by two, and "}" follows "{"
	}
	var t tally
	if l.value(&t, maxDepth); l.broken {
		return nil
	}
	return t.shape()
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// A looker reads JSON, as far as it is whole and valid.
type looker struct {
	text   string
	at     int
	broken bool
}

// next skips white space and returns the next byte, 0 at the end.
func (l *looker) next() byte {
	for ; l.at < len(l.text); l.at++ {
		if c := l.text[l.at]; !space(c) {
			return c
		}
	}
	return 0
}

// take passes over c, and reports whether it was there.
func (l *looker) take(c byte) bool {
	if l.next() == c {
		l.at++
		return true
	}
	return false
}

// over reports whether there is no more to read.
func (l *looker) over() bool { return l.broken || l.next() == 0 }

// value reads one value into t. At depth 0 it is passed over.
func (l *looker) value(t *tally, depth int) {
	switch l.next() {
	case 0:
	case '{':
		l.object(t, depth)
	case '[':
		l.array(t, depth)
	case '"':
		if _, ok := l.str(); ok {
			t.String = true
		}
	default:
		switch word := l.word(); {
		case word == "null":
			t.Null = true
		case word == "true" || word == "false":
			t.Boolean = true
		case word != "" && (word[0] == '-' || word[0] >= '0' && word[0] <= '9'):
			t.Number = true
		case l.at < len(l.text):
			l.broken = true
		}
	}
}

// word reads a number, true, false or null.
func (l *looker) word() string {
	from := l.at
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n,:]}{[\"", l.text[l.at]) < 0 {
		l.at++
	}
	return l.text[from:l.at]
}

// str reads a string, as it is written. It reports false where it is cut off.
func (l *looker) str() (string, bool) {
	from := l.at + 1
	for i := from; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++
		case '"':
			l.at = i + 1
			return l.text[from:i], true
		}
	}
	l.at = len(l.text)
	return "", false
}

func (l *looker) array(t *tally, depth int) {
	elements := t.inside(depth, func() *tally {
		if t.items == nil {
			t.items = &tally{}
		}
		return t.items
	})
	for l.at++; !l.over() && !l.take(']'); {
		l.value(elements, depth-1)
		if !l.take(',') && !l.over() && l.next() != ']' {
			l.broken = true
		}
	}
}

func (l *looker) object(t *tally, depth int) {
	fields := t.inside(depth, func() *tally { return t })
	keys := 0
	for l.at++; !l.over(); keys++ {
		if l.take('}') {
			if fields.empty = fields.empty || keys == 0; keys > 0 {
				fields.objects++ // one that is cut off tells of no missing keys
			}
			return
		}
		key, ok := "", false
		if l.next() == '"' {
			key, ok = l.str()
		}
		if !ok || !l.take(':') {
			l.broken = l.broken || !l.over()
			return
		}
		l.value(fields.field(key), depth-1)
		if !l.take(',') && !l.over() && l.next() != '}' {
			l.broken = true
		}
	}
}

// A tally counts what it takes to tell the shape of the values at one place.
type tally struct {
	kinds
	items   *tally
	empty   bool // there was an object without keys
	objects int  // whole ones, with keys
	fields  map[string]*counted
	rest    *tally // of keys that are no names, or too many
}

// counted are the values of one key.
type counted struct {
	tally
	in int // objects that have the key
}

// inside returns the tally for the parts of an array or object, or, where that
// is too deep, one that nobody looks at.
func (t *tally) inside(depth int, parts func() *tally) *tally {
	if depth <= 0 {
		t.Any = true
		return &tally{}
	}
	return parts()
}

// field is the tally of a key's values.
func (t *tally) field(key string) *tally {
	if c, ok := t.fields[key]; ok {
		c.in++
		return &c.tally
	}
	if len(t.fields) >= maxKeys || !isName(key) { // an escape makes it no name
		if t.rest == nil {
			t.rest = &tally{}
		}
		return t.rest
	}
	if t.fields == nil {
		t.fields = map[string]*counted{}
	}
	c := &counted{in: 1}
	t.fields[strings.Clone(key)] = c
	return &c.tally
}

// shape is what the counts tell.
func (t *tally) shape() *shape {
	s := &shape{kinds: t.kinds}
	if t.items != nil {
		s.Items = t.items.shape()
	}
	if !t.empty && t.objects == 0 && t.fields == nil && t.rest == nil {
		return s
	}
	s.Object = &object{}
	if len(t.fields) > 0 {
		s.Object.Fields = make(map[string]field, len(t.fields))
	}
	for key, c := range t.fields {
		s.Object.Fields[key] = field{c.shape(), c.in < t.objects}
	}
	if t.rest != nil || t.scattered() || uniform(s.Object.Fields) {
		values := s.Object.values()
		if t.rest != nil {
			values = values.join(t.rest.shape())
		}
		s.Object = &object{Map: values}
	}
	return s
}

// scattered reports whether several objects have next to no keys in common:
// [{"alice": 1}, {"bob": 2}]. Then the keys are data.
func (t *tally) scattered() bool {
	const few = 4
	once := 0
	for _, c := range t.fields {
		if c.in == 1 {
			once++
		}
	}
	return t.objects >= few && 2*once > len(t.fields)
}

// uniform reports whether an object is a map by its looks: many values, all of
// them objects with the same keys.
func uniform(fields map[string]field) bool {
	const many = 6
	if len(fields) < many {
		return false
	}
	var first []string
	for _, f := range fields {
		if f.Is.Object == nil || len(f.Is.Object.Fields) < 2 {
			return false
		}
		keys := make([]string, 0, len(f.Is.Object.Fields))
		for key := range f.Is.Object.Fields {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if first == nil {
			first = keys
		} else if !slices.Equal(first, keys) {
			return false
		}
	}
	return true
}
