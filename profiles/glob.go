package profiles

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gobwas/glob"
)

const (
	maxPattern = 256 // bytes of one pattern
	maxStars   = 8   // wildcards of one pattern: matching may backtrack over each
)

// A pattern is a compiled glob over the whole of server__tool.
//
//   - any sequence of characters; it crosses everything
//     ?        any one character
//     [a-z]    one character of the range; [!a-z] one that is not
//     [abc]    one of the characters; [!abc] one that is none of them
//     {a,b}    either of the patterns, which may be nested
//     \x       x itself
//
// No character is a separator: with "." as one, `*delete*` would silently
// miss `github.delete_repo`.
type pattern struct {
	text string
	// literal is what stands before the first special character. Most
	// patterns are a name, or a prefix and a star: they are compared as
	// strings, and glob is nil.
	literal string
	prefix  bool
	glob    *glob.Pattern
}

func (p *pattern) match(path string) bool {
	switch {
	case p.glob != nil:
		return strings.HasPrefix(path, p.literal) && p.glob.Match(path)
	case p.prefix:
		return strings.HasPrefix(path, p.literal)
	}
	return path == p.literal
}

// A syntaxError is a mistake inside a string; offset counts bytes.
type syntaxError struct {
	offset  int
	message string
	hint    string
}

func (e *syntaxError) Error() string { return e.message }

// compilePattern checks and compiles one glob. It refuses what gobwas/glob
// would take in silence and what is nearly always a slip: brackets that do
// not pair, and [^...].
func compilePattern(text string) (pattern, *syntaxError) {
	bad := func(offset int, message, hint string) (pattern, *syntaxError) {
		return pattern{}, &syntaxError{offset, message, hint}
	}
	if text == "" {
		return bad(-1, "empty pattern", `"*" matches every tool`)
	}
	if len(text) > maxPattern {
		return bad(-1, fmt.Sprintf("pattern of %d bytes, the limit is %d", len(text), maxPattern), "")
	}
	if !utf8.ValidString(text) {
		return bad(-1, "the pattern is not valid UTF-8", "")
	}
	var open []int // offsets of the open braces
	stars, special := 0, -1
	for i := 0; i < len(text); i++ {
		c := text[i]
		if special < 0 && strings.IndexByte(`*?[]{}\`, c) >= 0 {
			special = i
		}
		switch c {
		case '*':
			if i == 0 || text[i-1] != '*' {
				stars++
			}
		case '\\':
			if i+1 == len(text) {
				return bad(i, `nothing follows the backslash`, "")
			}
			i++
		case '[':
			end, err := classEnd(text, i)
			if err != nil {
				return pattern{}, err
			}
			i = end
		case ']':
			return bad(i, `"]" without "["`, `write \] for the character itself`)
		case '{':
			open = append(open, i)
		case '}':
			if len(open) == 0 {
				return bad(i, `"}" without "{"`, `write \} for the character itself`)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return bad(open[len(open)-1], `"{" is not closed`, "")
	}
	if stars > maxStars {
		return bad(-1, fmt.Sprintf("pattern with %d stars, the limit is %d", stars, maxStars), "use several patterns")
	}
	switch {
	case special < 0:
		return pattern{text: text, literal: text}, nil
	case special == len(text)-1 && text[special] == '*':
		return pattern{text: text, literal: text[:special], prefix: true}, nil
	}
	g, err := glob.Compile(text)
	if err != nil {
		offset, message := -1, err.Error()
		if e, ok := err.(*glob.SyntaxError); ok {
			offset, message = min(e.Offset, len(text)), e.Reason
		}
		return bad(offset, "illegal pattern: "+message, "a class is one range or a list of characters; write {[a-z],[0-9]} for both")
	}
	return pattern{text: text, literal: text[:special], glob: g}, nil
}

// classEnd finds the "]" of the class that opens at start.
func classEnd(text string, start int) (int, *syntaxError) {
	i := start + 1
	if strings.HasPrefix(text[i:], "^") {
		return 0, &syntaxError{i, `"^" does not negate a class`, "write [!...], or [\\^...] for the character itself"}
	}
	if strings.HasPrefix(text[i:], "!") {
		i++
	}
	if strings.HasPrefix(text[i:], `\-`) {
		return 0, &syntaxError{i, `a class cannot begin with an escaped "-"`, "put it last"}
	}
	for from := i; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ']':
			if i == from {
				return 0, &syntaxError{start, "empty class", ""}
			}
			return i, nil
		}
	}
	return 0, &syntaxError{start, `"[" is not closed`, ""}
}

// anyMatch returns the first of the patterns that matches.
func anyMatch(patterns []pattern, path string) (*pattern, bool) {
	for i := range patterns {
		if patterns[i].match(path) {
			return &patterns[i], true
		}
	}
	return nil, false
}
