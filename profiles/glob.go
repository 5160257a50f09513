package profiles

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gobwas/glob"
)

const (
	maxPattern      = 256 // bytes of one pattern
	maxStars        = 8   // wildcards of one alternative
	maxAlternatives = 64  // alternatives of one pattern
)

// A pattern is a compiled glob over the whole of server__tool.
//
//	?        any one character
//	*        any sequence of characters; it crosses everything
//	[a-z]    one character of the range; [!a-z] one that is not
//	[abc]    one of the characters; [!abc] one that is none of them
//	{a,b}    either of the patterns, which may be nested
//	\x       x itself
//
// No character is a separator: with "." as one, `*delete*` would silently
// miss `github.delete_repo`.
//
// Braces are expanded when the pattern is compiled: matching them by backtracking
// takes exponential time on names that an upstream may choose; matching without
// braces does not.
type pattern struct {
	text         string
	alternatives []alternative // at least one
}

// An alternative is a pattern without braces.
type alternative struct {
	// literal is the text before the first special character. Most patterns are a
	// name, or a prefix and a star: they are compared as strings, and glob is nil.
	literal string
	prefix  bool
	glob    *glob.Pattern
}

func (p *pattern) match(path string) bool {
	for i := range p.alternatives {
		if p.alternatives[i].match(path) {
			return true
		}
	}
	return false
}

func (a *alternative) match(path string) bool {
	switch {
	case a.glob != nil:
		return strings.HasPrefix(path, a.literal) && a.glob.Match(path)
	case a.prefix:
		return strings.HasPrefix(path, a.literal)
	}
	return path == a.literal
}

// name returns the one name that the pattern matches, if it has no wildcards.
func (p *pattern) name() (string, bool) {
	if len(p.alternatives) != 1 || p.alternatives[0].glob != nil || p.alternatives[0].prefix {
		return "", false
	}
	return p.alternatives[0].literal, true
}

// A syntaxError is a mistake inside a string; offset counts bytes.
type syntaxError struct {
	offset  int
	message string
	hint    string
}

func (e *syntaxError) Error() string { return e.message }

// compilePattern checks and compiles one glob. It refuses two things that
// gobwas/glob accepts silently and that are nearly always a slip: unpaired
// brackets, and [^...].
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
	if offset, message, hint := Unseen(text); offset >= 0 {
		return bad(offset, message, hint)
	}
	var open []int // offsets of the open braces
	for i := 0; i < len(text); i++ {
		switch text[i] {
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
	texts, ok := writeOut(text, maxAlternatives)
	if !ok {
		return bad(-1, fmt.Sprintf("the braces stand for more than %d patterns", maxAlternatives), "use several patterns")
	}
	p := pattern{text: text}
	for _, t := range texts {
		a, err := compileAlternative(t)
		if err != nil {
			if len(texts) > 1 {
				err.offset = -1 // it refers to the expanded text
			}
			return pattern{}, err
		}
		p.alternatives = append(p.alternatives, a)
	}
	return p, nil
}

// compileAlternative compiles a pattern without braces.
func compileAlternative(text string) (alternative, *syntaxError) {
	special := strings.IndexAny(text, `*?[\`)
	switch {
	case special < 0:
		return alternative{literal: text}, nil
	case special == len(text)-1 && text[special] == '*':
		return alternative{literal: text[:special], prefix: true}, nil
	}
	if stars := strings.Count(text, "*"); stars > maxStars {
		return alternative{}, &syntaxError{-1, fmt.Sprintf("pattern with %d stars, the limit is %d", stars, maxStars), "use several patterns"}
	}
	g, err := glob.Compile(text)
	if err != nil {
		offset, message := -1, err.Error()
		if e, ok := err.(*glob.SyntaxError); ok {
			offset, message = min(e.Offset, len(text)), e.Reason
		}
		return alternative{}, &syntaxError{offset, "illegal pattern: " + message, "a class is one range or a list of characters; write {[a-z],[0-9]} for both"}
	}
	return alternative{literal: text[:special], glob: g}, nil
}

// writeOut replaces a{b,c}d by abd and acd until no brace is left. The brackets of
// text must be paired. It reports false if there would be more than most texts.
func writeOut(text string, most int) ([]string, bool) {
	begin, depth := -1, 0
	var cuts []int // the commas of the first pair of braces, and its end
	for i := 0; i < len(text) && (begin < 0 || depth > 0); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			end, _ := classEnd(text, i)
			i = end
		case '{':
			if begin < 0 {
				begin = i
			}
			depth++
		case '}':
			if depth--; depth == 0 {
				cuts = append(cuts, i)
			}
		case ',':
			if depth == 1 {
				cuts = append(cuts, i)
			}
		}
	}
	if begin < 0 {
		return []string{text}, true
	}
	if len(cuts) > most {
		return nil, false
	}
	var all []string
	from, after := begin+1, text[cuts[len(cuts)-1]+1:]
	for _, cut := range cuts {
		texts, ok := writeOut(text[:begin]+text[from:cut]+after, most-len(all))
		if !ok {
			return nil, false
		}
		all, from = append(all, texts...), cut+1
	}
	return all, len(all) <= most
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
