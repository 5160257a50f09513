package source

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"codemode-bridge/analysis"
)

// maxFrameWidth bounds a line of a code frame, in characters.
const maxFrameWidth = 120

// split returns the script's lines without their ends.
func (s *Script) split() []string {
	if s.lines == nil {
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s.Text)
		s.lines = strings.Split(text, "\n")
	}
	return s.lines
}

// LineOf returns a line by its number, or "".
func (s *Script) LineOf(line int) string {
	if line < 1 || line > len(s.split()) {
		return ""
	}
	return s.split()[line-1]
}

// place maps a line and column of goja's, both from 1, to the model's text.
func (s *Script) place(line, column int) analysis.Position {
	if line < 1 || line > len(s.split()) {
		return analysis.Position{}
	}
	if s.rebased && line == 1 {
		column += len(wrapHead)
	}
	return s.callee(analysis.Position{Line: line, Column: s.column(line, column-1, s.typed)})
}

// column turns an offset in a line of the wrapped text, in bytes or UTF-16
// units, into a column that counts characters from 1.
func (s *Script) column(line, offset int, utf16 bool) int {
	if line < 1 || line > len(s.split()) {
		return 1
	}
	if line == 1 {
		offset -= len(wrapHead)
	}
	n := 1
	for _, r := range s.split()[line-1] {
		if offset <= 0 {
			break
		}
		switch {
		case !utf16:
			offset -= utf8.RuneLen(r)
		case r > 0xffff:
			offset -= 2
		default:
			offset--
		}
		n++
	}
	return n
}

// callee moves a position from a call's opening parenthesis, where goja sees
// a call, to the name before it, where people do.
func (s *Script) callee(p analysis.Position) analysis.Position {
	line := []rune(s.split()[p.Line-1])
	i := p.Column - 1
	if i <= 0 || i >= len(line) || line[i] != '(' {
		return p
	}
	for i > 0 && NameRune(line[i-1]) {
		i--
	}
	p.Column = i + 1
	return p
}

// callPath matches what comes before a tool's name in a call.
var callPath = Pattern(`codemode(\s*\??\.\s*[\w$]+|\[\s*("[^"]*"|'[^']*')\s*\])*\s*\??\.?\s*$`)

// CallStart moves the position of a call to the word codemode, if that is on the
// same line: there the preview puts it.
func (s *Script) CallStart(p analysis.Position) analysis.Position {
	if p.Line < 1 || p.Line > len(s.split()) {
		return p
	}
	line := []rune(s.split()[p.Line-1])
	if p.Column < 1 || p.Column > len(line) {
		return p
	}
	before := string(line[:p.Column-1])
	if at := callPath().FindStringIndex(before); at != nil {
		p.Column = 1 + utf8.RuneCountInString(before[:at[0]])
	}
	return p
}

// NameRune reports whether a character may be part of a name; it is generous
// beyond ASCII.
func NameRune(r rune) bool {
	switch {
	case r == '_', r == '$', r > 0x7f:
		return true
	case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z':
		return true
	}
	return false
}

// From returns the rest of the line at a position.
func (s *Script) From(p analysis.Position) string {
	if p.Line < 1 || p.Line > len(s.split()) {
		return ""
	}
	line := []rune(s.split()[p.Line-1])
	if p.Column < 1 || p.Column > len(line) {
		return ""
	}
	return string(line[p.Column-1:])
}

// end returns the place of the last character that is not white space.
func (s *Script) end() analysis.Position {
	lines := s.split()
	for i := len(lines) - 1; i >= 0; i-- {
		if t := strings.TrimRight(lines[i], " \t"); t != "" {
			return analysis.Position{Line: i + 1, Column: utf8.RuneCountInString(t)}
		}
	}
	return analysis.Position{}
}

// placeOf returns the place of an offset, in bytes, of the text.
func (s *Script) placeOf(offset int) analysis.Position {
	before := (&Script{Text: s.Text[:offset]}).split()
	return analysis.Position{Line: len(before), Column: 1 + utf8.RuneCountInString(before[len(before)-1])}
}

// Frame shows the lines around a position, two before and two after, with a
// caret under it:
//
//	  3 | const issues = await codemode.github__list_issues({});
//	> 4 | return issues.filter(i => i.open);
//	    |               ^
//	  5 | // the end
//
// Long lines are cut to a window around the caret.
func (s *Script) Frame(p analysis.Position) string {
	lines := s.split()
	if p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	from, to := max(1, p.Line-2), min(len(lines), p.Line+2)
	width := len(fmt.Sprint(to))
	start := 0 // first character of the window
	if p.Column > maxFrameWidth-20 {
		start = p.Column - maxFrameWidth/2
	}
	var b strings.Builder
	for n := from; n <= to; n++ {
		mark := "  "
		if n == p.Line {
			mark = "> "
		}
		text, cut := window(lines[n-1], start)
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s%*d | %s", mark, width, n, text), " "))
		b.WriteByte('\n')
		if n == p.Line && p.Column > 0 {
			pad := p.Column - 1 - start + cut
			b.WriteString(strings.Repeat(" ", 2+width) + " | " + strings.Repeat(" ", max(0, pad)) + "^\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// misleading reports whether a character could move the caret or a terminal's
// cursor, or change the direction of text.
func misleading(c rune) bool {
	switch {
	case c < ' ', 0x7f <= c && c < 0xa0, c == 0xfeff:
		return true
	case 0x200b <= c && c <= 0x200f, 0x202a <= c && c <= 0x202e, 0x2066 <= c && c <= 0x2069:
		return true
	}
	return false
}

// window cuts a line to maxFrameWidth characters from start on, and replaces
// misleading ones by blanks. shift is how far the mark of a cut moved the text to
// the right.
func window(line string, start int) (text string, shift int) {
	r := []rune(line)
	for i, c := range r {
		if misleading(c) {
			r[i] = ' '
		}
	}
	if start > 0 {
		if start >= len(r) {
			return "…", 1
		}
		r = r[start:]
	}
	end := ""
	if len(r) > maxFrameWidth {
		r, end = r[:maxFrameWidth], "…"
	}
	if start > 0 {
		return "…" + string(r) + end, 1
	}
	return string(r) + end, 0
}

var awaits = Pattern(`\bawait\b`)

// OnlyAwait guesses where a script waits for what will never come: at its only
// await of something that is not a call of codemode.
func (s *Script) OnlyAwait() (at analysis.Position) {
	count := 0
	for i, line := range s.split() {
		for _, m := range awaits().FindAllStringIndex(line, -1) {
			rest := strings.TrimLeft(line[m[1]:], " (")
			if strings.HasPrefix(rest, "codemode") {
				continue
			}
			count++
			at = analysis.Position{Line: i + 1, Column: utf8.RuneCountInString(line[:m[0]]) + 1}
		}
	}
	if count != 1 {
		return analysis.Position{}
	}
	return at
}

// Word reports whether a name occurs in the script as a word of its own.
func (s *Script) Word(name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(s.Text)
}
