package canon

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Literal writes a text that is in the form of Escape or Display as a JSON
// string on one line. What that form writes as \u{1B} is \u001b here, so
// decoding the string gives the original back, but for the parts that Display
// hides or leaves out. A [hidden or … of the original is an escape, too: only
// Display's own stand as they are.
func Literal(shown string) string {
	b := make([]byte, 0, len(shown)+2)
	b = append(b, '"')
	for i := 0; i < len(shown); {
		c := shown[i]
		if c == '\\' {
			if m := writtenOut.FindStringSubmatch(shown[i:]); m != nil {
				n, _ := strconv.ParseUint(m[1], 16, 32) // at most eight digits of it
				b = appendEscape(b, rune(n))
				i += len(m[0])
				continue
			}
		}
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n', '\t', '\r':
			b = appendEscape(b, rune(c))
		default:
			b = append(b, c)
		}
		i++
	}
	return string(append(b, '"'))
}

// writtenOut matches what Escape writes for a character.
var writtenOut = regexp.MustCompile(`^\\u\{([0-9A-F]{1,6})\}`)

// appendEscape appends how JSON writes a character by its number.
func appendEscape(b []byte, r rune) []byte {
	if i := strings.IndexRune("\\\n\t\r\b\f", r); i >= 0 {
		return append(b, '\\', `\ntrbf`[i])
	}
	for _, unit := range utf16.Encode([]rune{r}) {
		b = append(b, `\u`...)
		b = append(b, strconv.FormatUint(uint64(unit)|0x10000, 16)[1:]...)
	}
	return b
}

// LiteralJSON does for JSON whose strings are in the form of Display what
// Literal does for a text.
func LiteralJSON(shown []byte) string {
	var b strings.Builder
	for i := 0; i < len(shown); {
		if shown[i] != '"' {
			b.WriteByte(shown[i])
			i++
			continue
		}
		end := i + 1
		for end < len(shown) && shown[end] != '"' {
			if shown[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(shown))
		var text string
		if json.Unmarshal(shown[i:end], &text) != nil { // it is no JSON: then it is a text
			return Literal(Escape(string(shown)))
		}
		b.WriteString(Literal(text))
		i = end
	}
	return b.String()
}

// Span writes a text, which must be one line that neither begins nor ends with
// a space or a backtick, such as a literal, as a code span: in a fence of
// backticks that is longer than any run of them inside. Every reader shows it
// as it is, whether it renders Markdown or not. It may not begin a line, where
// a long fence would be that of a code block.
func Span(text string) string {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + text + fence
}

// Label is a short text of others, in the form of Escape, for where a code
// span would be odd, such as a field's title: as it is, if it consists of
// words and punctuation that no reader of Markdown changes, and otherwise as a
// code span of its literal.
func Label(shown string) string {
	if inert(shown) {
		return shown
	}
	return Span(Literal(shown))
}

// inert reports whether a text has nothing in it that means something in
// Markdown, or that a reader makes a link of.
func inert(s string) bool {
	before := ' '
	for i, c := range s {
		after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(c):])
		last := i+utf8.RuneLen(c) == len(s)
		switch {
		case isWord(c), unicode.IsMark(c):
		case c == ' ':
			if before == ' ' || last {
				return false
			}
		case c == ')' && unicode.IsDigit(before): // 1) begins a list
			return false
		case strings.ContainsRune(",?!'()", c):
		case c == '.' || c == ':' || c == ';': // else a host, an address or the name of a symbol
			if i == 0 || !last && after != ' ' || unicode.IsDigit(before) {
				return false
			}
		case c == '_' || c == '-' || c == '/':
			if !isWord(before) || !isWord(after) {
				return false
			}
		default:
			return false
		}
		before = c
	}
	first, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWord(first)
}

func isWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
