// Package strict reads the text of a configuration: JSON with comments, its bounds, and its
// mistakes with their places.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// The bounds of a file. They are generous for people and small for programs:
// nobody writes a megabyte of configuration or nests it 32 deep.
const (
	MaxFile  = 1 << 20
	MaxDepth = 32
)

// A Source is the text of one file with what is needed to name places in it.
type Source struct {
	File  string
	Text  []byte
	lines []int // byte offset at which each line starts
	// Over, if not nil, is an overlay. Its text counts as if it followed this one,
	// one byte apart: larger offsets lie in it.
	Over *Source
}

// beyond returns the overlay and the offset in it, if the offset lies there.
func (s *Source) beyond(offset int) (*Source, int, bool) {
	if s.Over == nil || offset <= len(s.Text) {
		return nil, 0, false
	}
	return s.Over, offset - len(s.Text) - 1, true
}

// NewSource returns the text of a file, not read yet.
func NewSource(file string, text []byte) *Source {
	s := &Source{File: file, Text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// Place turns a byte offset into a line and a column. A byte that is no UTF-8
// counts as one character.
func (s *Source) Place(offset int) (line, column int) {
	if over, within, ok := s.beyond(offset); ok {
		return over.Place(within)
	}
	offset = min(max(offset, 0), len(s.Text))
	line = sort.SearchInts(s.lines, offset+1)
	return line, 1 + utf8.RuneCount(s.Text[s.lines[line-1]:offset])
}

// offset returns the offset of a line and a byte column, as hujson counts them.
func (s *Source) offset(line, byteColumn int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.Text)
	}
	return min(s.lines[line-1]+byteColumn-1, len(s.Text))
}

// FileOf returns the name of the file that an offset lies in.
func (s *Source) FileOf(offset int) string {
	if over, within, ok := s.beyond(offset); ok {
		return over.FileOf(within)
	}
	return s.File
}

// Problem returns a mistake at an offset.
func (s *Source) Problem(offset int, path, message, hint string) *FieldError {
	line, column := s.Place(offset)
	return &FieldError{File: s.FileOf(offset), Line: line, Column: column, Path: path, Message: message, Hint: hint}
}

// Parse turns the text into a syntax tree. After a mistake in the syntax nothing
// that follows can be trusted, so there is never more than one problem.
func (s *Source) Parse() (hujson.Value, *FieldError) {
	var none hujson.Value
	if p := s.encoding(); p != nil {
		return none, p
	}
	open, p := s.brackets()
	if p != nil {
		return none, p
	}
	// hujson wants a line break after a line comment, also after the last.
	tree, err := hujson.Parse(append(bytes.Clone(s.Text), '\n'))
	if err != nil {
		return none, s.syntax(err, open)
	}
	if tree.Value.Kind() != '{' {
		return none, s.Problem(tree.StartOffset, "",
			fmt.Sprintf("a configuration is an object, found %s", KindName(tree.Value)), `start with "{"`)
	}
	return tree, nil
}

// encoding refuses what is not plain UTF-8 text of a sensible size.
func (s *Source) encoding() *FieldError {
	t := s.Text
	const utf8Hint = "save the file as UTF-8 without a byte order mark"
	switch {
	case len(t) > MaxFile:
		return s.Problem(MaxFile, "", "the file is larger than 1 MB", "")
	case bytes.HasPrefix(t, []byte("\xef\xbb\xbf")):
		return s.Problem(0, "", "the file starts with a byte order mark", utf8Hint)
	case bytes.HasPrefix(t, []byte("\xff\xfe")), bytes.HasPrefix(t, []byte("\xfe\xff")),
		len(t) >= 2 && (t[0] == 0) != (t[1] == 0):
		return s.Problem(0, "", "the file is UTF-16, not UTF-8", utf8Hint)
	}
	for i := 0; i < len(t); {
		r, n := utf8.DecodeRune(t[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return s.Problem(i, "", fmt.Sprintf("the byte 0x%02x is not UTF-8", t[i]), utf8Hint)
		case r == 0:
			return s.Problem(i, "", "the file holds a NUL character", "")
		}
		i += n
	}
	if len(bytes.TrimSpace(t)) == 0 {
		return s.Problem(0, "", "the file is empty", `the smallest configuration is {}`)
	}
	return nil
}

// brackets walks over the brackets alone, so that the parser, which calls
// itself for every level, never meets a text that is too deep. It returns the
// offsets of the brackets, and of the string, that are still open at the end.
func (s *Source) brackets() (open []int, _ *FieldError) {
	t := s.Text
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '{', '[':
			if len(open) == MaxDepth {
				return nil, s.Problem(i, "", fmt.Sprintf("nested deeper than %d levels", MaxDepth), "")
			}
			open = append(open, i)
		case '}', ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case '"':
			start := i
			for i++; i < len(t) && t[i] != '"'; i++ {
				if t[i] == '\\' {
					i++
				}
			}
			if i >= len(t) {
				open = append(open, start)
			}
		case '/':
			switch {
			case bytes.HasPrefix(t[i:], []byte("//")):
				i = after(t, i, "\n") - 1
			case bytes.HasPrefix(t[i:], []byte("/*")):
				i = after(t, i+2, "*/") - 1
			}
		}
	}
	return open, nil
}

// after returns the offset behind the next end in t from i on, or len(t).
func after(t []byte, i int, end string) int {
	n := bytes.Index(t[i:], []byte(end))
	if n < 0 {
		return len(t)
	}
	return i + n + len(end)
}

// syntax turns an error of hujson into a problem of ours. The text of the
// file is not repeated in it: it may be a secret that lost its quotes.
func (s *Source) syntax(err error, open []int) *FieldError {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return s.Problem(0, "", "the file is not JSON", "")
	}
	at := s.offset(line, column)
	reason := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) || at >= len(s.Text) {
		return s.unfinished(reason, open)
	}
	rest := s.Text[at:]
	found := visible(rest)
	switch {
	case rest[0] == '"' && strings.Contains(reason, "invalid literal"):
		return s.brokenString(at)
	case strings.Contains(reason, "invalid literal"), rest[0] == '\'', rest[0] == '`':
		message, hint := literal(rest)
		return s.Problem(at, "", message, hint)
	case strings.Contains(reason, "after top-level value"):
		return s.Problem(at, "", fmt.Sprintf("unexpected %s after the end of the configuration", found),
			"the file is one object; is there a bracket too many?")
	case strings.Contains(reason, "at start of object name"):
		return s.Problem(at, "", fmt.Sprintf("unexpected %s where a key should start", found), `keys are strings in double quotes`)
	case strings.Contains(reason, "after object name"):
		return s.Problem(at, "", fmt.Sprintf("unexpected %s after a key", found), `put ":" between key and value`)
	case strings.Contains(reason, "after object value"):
		return s.Problem(at, "", fmt.Sprintf("unexpected %s after a value", found), `put "," before the next key, or "}" to end the object`)
	case strings.Contains(reason, "after array value"):
		return s.Problem(at, "", fmt.Sprintf("unexpected %s after a value", found), `put "," before the next value, or "]" to end the list`)
	case strings.Contains(reason, "in line comment"), strings.Contains(reason, "in comment"):
		return s.Problem(at, "", "a comment holds a line separator", "")
	case rest[0] == '#':
		return s.Problem(at, "", `unexpected "#"`, `comments start with "//"`)
	case rest[0] == ',' || rest[0] == ':' || rest[0] == '}' || rest[0] == ']':
		return s.Problem(at, "", fmt.Sprintf("unexpected %s where a value should start", found), "")
	default:
		message, hint := literal(rest)
		return s.Problem(at, "", message, hint)
	}
}

// unfinished says that the text stops early, and where the last bracket was opened
// that it did not close.
func (s *Source) unfinished(reason string, open []int) *FieldError {
	message, hint := "the file ends in the middle", ""
	if n := len(open); n > 0 && s.Text[open[n-1]] == '"' {
		if bytes.IndexByte(bytes.TrimRight(s.Text[open[n-1]:], "\r\n"), '\n') >= 0 {
			return s.brokenString(open[n-1])
		}
		message = "the file ends inside a string"
		open = open[:n-1]
	}
	switch {
	case strings.Contains(reason, "parsing comment"):
		message = "the file ends inside a comment"
	case len(open) == 0:
		message = "the file holds no configuration"
		hint = `the smallest configuration is {}`
	}
	if n := len(open); n > 0 {
		line, column := s.Place(open[n-1])
		hint = fmt.Sprintf("the %q of line %d, column %d is not closed", s.Text[open[n-1]], line, column)
	}
	return s.Problem(len(s.Text), "", message, hint)
}

// brokenString says what is wrong with the string that starts at the offset.
func (s *Source) brokenString(start int) *FieldError {
	for i := start + 1; i < len(s.Text) && s.Text[i] != '"'; i++ {
		switch c := s.Text[i]; {
		case c == '\n' || c == '\r':
			return s.Problem(start, "", "a string goes past the end of its line", `close it with a double quote; write a line break as "\n"`)
		case c < 0x20:
			return s.Problem(i, "", fmt.Sprintf("a control character (0x%02x) in a string", c), fmt.Sprintf(`write it as "\u%04x"`, c))
		case c == '\\':
			if i+1 < len(s.Text) && s.Text[i+1] == 'u' && Hex4(s.Text[i+2:]) >= 0 {
				i += 5
			} else if i+1 < len(s.Text) && strings.IndexByte(`"\/bfnrt`, s.Text[i+1]) >= 0 {
				i++
			} else {
				return s.Problem(i, "", "an escape that JSON does not have", `write a backslash as "\\"`)
			}
		}
	}
	return s.Problem(start, "", "a string that JSON does not allow", "")
}

// literal describes a bare word, number or quote that is no JSON value.
func literal(rest []byte) (message, hint string) {
	end := 0
	for end < len(rest) && ofBareWord(rest[end]) {
		end++
	}
	word := string(rest[:end])
	switch lower := strings.ToLower(word); {
	case word == "" && (rest[0] == '\'' || rest[0] == '`'):
		return "strings are written in double quotes", ""
	case word == "":
		return fmt.Sprintf("unexpected %s", visible(rest)), ""
	case slices.Contains([]string{"true", "false", "null"}, lower):
		return "true, false and null are written in lower case", ""
	case slices.Contains([]string{"none", "undefined", "nan", "infinity", "-infinity"}, lower):
		return "there is no such value in JSON", "leave the key out to get its default"
	case word[0] >= '0' && word[0] <= '9' || strings.IndexByte("+-.", word[0]) >= 0:
		if unicode.IsLetter(rune(word[len(word)-1])) {
			hint = `durations and sizes are strings, such as "60s" and "4MB"`
		}
		return "a number that JSON does not allow", hint
	default:
		return "text without quotes", "put it in double quotes"
	}
}

// ofBareWord reports whether a word or number without quotes may have the byte.
func ofBareWord(c byte) bool {
	return strings.IndexByte("-+._", c) >= 0 || c < utf8.RuneSelf && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)))
}

// visible quotes the first character of rest so that it can be seen.
func visible(rest []byte) string {
	if len(rest) == 0 {
		return "end of file"
	}
	r, _ := utf8.DecodeRune(rest)
	if r == '"' {
		return "double quote"
	}
	return fmt.Sprintf("%q", string(r))
}

// Hex4 reads four hexadecimal digits, or gives -1.
func Hex4(t []byte) rune {
	if len(t) < 4 {
		return -1
	}
	var r rune
	for _, c := range t[:4] {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if i < 0 || c < '0' {
			return -1
		}
		r = r<<4 | rune(i)
	}
	return r
}

// KindName names the kind of a value, for people.
func KindName(v hujson.ValueTrimmed) string {
	switch v.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// Within finds where the n-th byte of a string's value stands in its literal.
// Escapes are longer than what they mean, so both are walked side by side.
func Within(lit []byte, n int) int {
	i := 1
	for i < len(lit)-1 && n > 0 {
		size, width := 1, 1
		if lit[i] == '\\' {
			width = 2
			if lit[i+1] == 'u' {
				width = 6
				r := Hex4(lit[i+2:])
				if 0xd800 <= r && r < 0xdc00 {
					width, r = 12, 0x10000
				}
				size = max(utf8.RuneLen(r), 1)
			}
		}
		if size > n {
			break
		}
		i, n = i+width, n-size
	}
	return i
}
