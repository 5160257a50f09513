package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Digest is "sha256:" and 64 hex digits over all fields. The order of keys and
// the white space of the schemas make no difference; any other change does.
func (d Definition) Digest() string {
	// A hash over the fields in fixed order, each with its length before it.
	buf := make([]byte, 0, len(d.Input)+len(d.Output)+len(d.Description)+256)
	buf = append(buf, "definition 1\n"...)
	buf = appendText(buf, d.Name)
	buf = appendText(buf, d.Title)
	buf = appendText(buf, d.Description)
	buf = appendSchema(buf, d.Input)
	buf = appendSchema(buf, d.Output)
	for _, hint := range []*bool{d.Annotations.ReadOnly, d.Annotations.Destructive, d.Annotations.Idempotent, d.Annotations.OpenWorld} {
		switch {
		case hint == nil:
			buf = append(buf, '-')
		case *hint:
			buf = append(buf, '1')
		default:
			buf = append(buf, '0')
		}
	}
	sum := sha256.Sum256(buf)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func appendText(buf []byte, s string) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(s)))
	return append(buf, s...)
}

// appendSchema appends a form of raw that is the same for all JSON texts that
// differ only in white space, order of keys and escapes, and different for any
// others. Numbers are compared as written. What is no JSON is taken as it is.
func appendSchema(buf []byte, raw json.RawMessage) []byte {
	switch {
	case len(raw) == 0:
		return append(buf, '-')
	case !json.Valid(raw): // which bounds the nesting, too
		return appendText(append(buf, '!'), string(raw))
	}
	s := scanner{text: raw}
	return s.value(append(buf, '='))
}

// A scanner walks over valid JSON in one pass, however deep it is nested: the depth
// may be chosen by a malicious server.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// value appends the value at s.at: a letter for its kind, then its content.
// Objects and arrays end with a byte that begins no value.
func (s *scanner) value(buf []byte) []byte {
	s.space()
	switch s.text[s.at] {
	case '"':
		return appendText(append(buf, 's'), s.str())
	case '[':
		s.at++
		buf = append(buf, 'a')
		for s.space(); s.text[s.at] != ']'; s.space() {
			if s.text[s.at] == ',' {
				s.at++
			}
			buf = s.value(buf)
		}
		s.at++
		return append(buf, '.')
	case '{':
		return s.object(buf)
	}
	from := s.at
	for s.at < len(s.text) && !strings.ContainsRune(" \t\r\n,]}", rune(s.text[s.at])) {
		s.at++
	}
	return appendText(append(buf, 'w'), string(s.text[from:s.at]))
}

func (s *scanner) object(buf []byte) []byte {
	type member struct {
		key        string
		start, end int // in buf
	}
	var members []member
	s.at++
	buf = append(buf, 'o')
	base := len(buf)
	for s.space(); s.text[s.at] != '}'; s.space() {
		if s.text[s.at] == ',' {
			s.at++
			s.space()
		}
		key := s.str()
		s.space()
		s.at++ // the colon
		start := len(buf)
		buf = s.value(appendText(buf, key))
		members = append(members, member{key, start, len(buf)})
	}
	s.at++
	byKey := func(a, b member) int { return strings.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(members, byKey) {
		// Stable: of equal keys the last counts, wherever it stands.
		slices.SortStableFunc(members, byKey)
		written := slices.Clone(buf[base:])
		buf = buf[:base]
		for _, m := range members {
			buf = append(buf, written[m.start-base:m.end-base]...)
		}
	}
	// A large object counts by its hash, so that sorting the objects around it
	// does not copy its content again and again.
	if len(buf)-base > 4096 {
		sum := sha256.Sum256(buf[base:])
		return append(append(buf[:base-1], 'h'), sum[:]...)
	}
	return append(buf, '.')
}

// str reads a string.
func (s *scanner) str() string {
	from := s.at
	escaped := false
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			escaped = true
			s.at++
		}
	}
	s.at++
	if !escaped {
		return string(s.text[from+1 : s.at-1])
	}
	var text string
	if json.Unmarshal(s.text[from:s.at], &text) != nil {
		return string(s.text[from:s.at])
	}
	return text
}
