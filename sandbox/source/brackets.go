package source

import (
	"strings"

	"codemode-bridge/analysis"
)

// A bracket is what opens a part of a script: a bracket, or the quote of a
// template literal.
type bracket struct {
	char byte // as it is written; for the ${ of a template '{'
	at   int  // offset in the text
	hole bool // the ${ of a template
}

var closers = map[byte]byte{')': '(', ']': '[', '}': '{'}

// unmatched reads a text that no parser accepts and returns the innermost
// bracket that is never closed, and where one is closed that was never
// opened (-1 if nowhere). Parsers can't tell: to them the script goes on with
// the end of its wrapper. A slash is taken for the beginning of a regular
// expression where no value can come before it.
func unmatched(text string) (open *bracket, extra int) {
	var stack []bracket
	value := false // what was read last may be the end of a value
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case strings.HasPrefix(text[i:], "//"):
			i += lineLength(text[i:])
			continue
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return last(stack), -1
			}
			i += n + 4
			continue
		case c == '"' || c == '\'':
			i += quotedLength(text[i:], c)
			value = true
			continue
		case c == '/' && !value:
			i += patternLength(text[i:])
			value = true
			continue
		case c == '(' || c == '[' || c == '{':
			stack = append(stack, bracket{c, i, false})
			value = false
		case c == ')' || c == ']' || c == '}':
			n := len(stack)
			if n == 0 {
				return nil, i
			}
			top := stack[n-1]
			if top.char != closers[c] {
				return &top, -1
			}
			stack = stack[:n-1]
			if value = true; top.hole {
				i, stack = template(text, i+1, stack)
				continue
			}
		case c == '`':
			stack = append(stack, bracket{c, i, false})
			i, stack = template(text, i+1, stack)
			value = len(stack) == 0 || !stack[len(stack)-1].hole
			continue
		case NameRune(rune(c)):
			n := i
			for i < len(text) && NameRune(rune(text[i])) {
				i++
			}
			value = !operators[text[n:i]]
			continue
		default:
			value = false
		}
		i++
	}
	return last(stack), -1
}

// operators are the words that a value follows.
var operators = map[string]bool{"return": true, "await": true, "typeof": true, "case": true, "in": true, "of": true,
	"delete": true, "void": true, "throw": true, "new": true, "else": true, "do": true, "yield": true, "instanceof": true}

func last(stack []bracket) *bracket {
	if len(stack) == 0 {
		return nil
	}
	return &stack[len(stack)-1]
}

// template reads on in the template literal on top of the stack: to its end,
// which pops it, or past the next ${, which it pushes.
func template(text string, i int, stack []bracket) (int, []bracket) {
	for ; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '`':
			return i + 1, stack[:len(stack)-1]
		case strings.HasPrefix(text[i:], "${"):
			return i + 2, append(stack, bracket{'{', i + 1, true})
		}
	}
	return len(text), stack
}

func lineLength(text string) int {
	if n := strings.IndexAny(text, "\r\n\u2028\u2029"); n >= 0 {
		return n
	}
	return len(text)
}

// quotedLength returns the length of a string literal. One that is not closed
// ends with its line.
func quotedLength(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n', '\r':
			return i
		}
	}
	return len(text)
}

// patternLength returns the length of a regular expression literal.
func patternLength(text string) int {
	class := false
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i + 1
			}
		case '\n', '\r':
			return i
		}
	}
	return len(text)
}

// endFailure says what is wrong with a script whose error is reported at the end
// of its wrapper: it closed the wrapper, or left something open.
func (s *Script) endFailure() (message string, at analysis.Position) {
	open, extra := unmatched(s.Text)
	switch {
	case extra >= 0:
		return "unexpected " + s.Text[extra:extra+1] + ": no bracket is open that it could close", s.placeOf(extra)
	case open != nil:
		return "unexpected end of the script: the " + string(rune(open.char)) + " here is not closed", s.placeOf(open.at)
	}
	return "unexpected end of the script", s.end()
}
