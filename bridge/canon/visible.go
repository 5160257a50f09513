package canon

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with every character written out that a person cannot see
// or that changes how other characters are seen. Use it once on any text that
// we did not write before it reaches a terminal, a page, a form or a log.
//
// What stays as it is: printable ASCII, and other letters, marks, numbers,
// punctuation and symbols of Unicode. All else becomes \u{HEX}, with upper-case
// digits and no leading zeros: \u{1B} for escape, \u{A} for a line feed,
// \u{202E} for a right-to-left override. That covers control and format
// characters, every space but U+0020, private and unassigned characters, tag
// characters, variation selectors, fillers that look like nothing, combining
// marks with no letter before them, and each mark after the fourth on one
// letter. A byte that is not UTF-8 becomes \x{HEX}.
//
// The form is unambiguous: a backslash that stands before u{ or x{ in s is
// itself written \u{5C}, so the original can always be told from the result.
// For the same reason Escape of a result is not that result.
//
// Letters of right-to-left scripts are letters and stay; a page should isolate
// what it shows (the bdi element).
func Escape(s string) string { return visible(s, false) }

// EscapeLines is Escape for text of several lines, such as a script: line
// feeds and tabs stay as they are, and a line feed may follow a carriage
// return, which is then dropped.
func EscapeLines(s string) string {
	return visible(strings.ReplaceAll(s, "\r\n", "\n"), true)
}

func visible(s string, lines bool) string {
	i := 0
	for i < len(s) && clear[s[i]] {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	e := eye{lines: lines}
	for i := 0; i < len(s); {
		form, size := e.look(s, i)
		b.WriteString(form)
		i += size
	}
	return b.String()
}

// clear tells the bytes that always stand for themselves.
var clear = func() (t [utf8.RuneSelf * 2]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = c != '\\' && c != '['
	}
	return t
}()

// maxMarks is how many combining marks one letter may carry. Vietnamese needs
// two, Hebrew, Thai and Devanagari three or four.
const maxMarks = 4

// An eye reads text character by character and says how each is shown.
type eye struct {
	lines bool // \n and \t stay
	marks bool // what Display's own marks begin with is written out

	base    bool // the last character can carry combining marks
	carried int  // and carries this many
}

// look returns how the character of s at i is shown, and its size in s.
func (e *eye) look(s string, i int) (form string, size int) {
	c := s[i]
	if c < utf8.RuneSelf {
		e.base, e.carried = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9', 0
		switch {
		case clear[c]:
		case c == '\\':
			if rest := s[i+1:]; strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{") {
				return escaped('\\'), 1
			}
		case c == '[':
			if e.marks && strings.HasPrefix(s[i:], hiddenMark) {
				return escaped('['), 1
			}
		case e.lines && (c == '\n' || c == '\t'):
		default:
			return escaped(rune(c)), 1
		}
		return s[i : i+1], 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && size == 1 {
		e.base = false
		return `\x{` + strings.ToUpper(strconv.FormatUint(uint64(c), 16)) + "}", 1
	}
	switch {
	case !unicode.IsPrint(r) || unicode.In(r, unseen...):
		e.base = false
		return escaped(r), size
	case e.marks && r == cutMark:
		e.base = false
		return escaped(r), size
	case unicode.IsMark(r):
		if !e.base || e.carried == maxMarks {
			return escaped(r), size
		}
		e.carried++
	default:
		e.base, e.carried = !unicode.IsPunct(r), 0
	}
	return s[i : i+size], size
}

func escaped(r rune) string {
	return `\u{` + strings.ToUpper(strconv.FormatInt(int64(r), 16)) + "}"
}

// unseen are the characters that Unicode counts among letters, marks and
// symbols, but that show as nothing or as a space.
var unseen = []*unicode.RangeTable{
	unicode.Other_Default_Ignorable_Code_Point, // fillers, grapheme joiner
	unicode.Variation_Selector,
	{
		R16: []unicode.Range16{
			{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // braille pattern blank
			{Lo: 0xFFFC, Hi: 0xFFFC, Stride: 1}, // object replacement
		},
		R32: []unicode.Range32{
			{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // hieroglyph blanks
			{Lo: 0x16FE4, Hi: 0x16FE4, Stride: 1}, // Khitan filler
			{Lo: 0x1D159, Hi: 0x1D159, Stride: 1}, // null notehead
		},
	},
}
