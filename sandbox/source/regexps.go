package source

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/dop251/goja/ast"
)

// goja silently misreads some regular expressions and refuses others. /\p{L}/u
// matches the letters "p{L}", unless something makes goja use regexp2, which knows
// \p: an empty look-ahead does. regexp2 knows only some names of properties, and
// neither knows the flags d and v. So literals are repaired in the tree, and
// patterns made at run time in prelude/regexp.js, both by Translate. The front end
// turns literals with d or v into patterns made at run time.

var unicodeClass = Pattern(`\\[pP]\{`)

// RepairRegexps repairs literals in the tree.
func (s *Script) RepairRegexps() {
	if !strings.Contains(s.Text, `\p{`) && !strings.Contains(s.Text, `\P{`) {
		return
	}
	eachNode(reflect.ValueOf(s.Program.Body), 0, func(n any) {
		lit, ok := n.(*ast.RegExpLiteral)
		if !ok || !unicodeClass().MatchString(lit.Pattern) {
			return
		}
		if text, err := s.Translate(lit.Pattern, lit.Flags); err == nil {
			lit.Pattern = text
			lit.Literal = "/" + text + "/" + lit.Flags
		}
	})
}

// Translate rewrites a pattern so that goja reads it as the language says, with
// the same flags but without d, and with u instead of v. It remembers what it
// changed, for the property source.
func (s *Script) Translate(pattern, flags string) (string, error) {
	sets := strings.Contains(flags, "v")
	if !sets && !strings.Contains(flags, "u") {
		return pattern, nil
	}
	t := &patternReader{text: pattern, sets: sets}
	out, err := t.pattern()
	if err != nil {
		return "", fmt.Errorf("invalid regular expression: /%s/%s: %w", pattern, flags, err)
	}
	if t.classes {
		out += "(?=)"
	}
	if out != pattern {
		if s.patterns == nil {
			s.patterns = make(map[string]string)
		}
		s.patterns[out] = pattern
	}
	return out, nil
}

// A patternReader rewrites one pattern.
type patternReader struct {
	text    string
	i       int
	sets    bool // flag v: classes nest and subtract
	classes bool // a \p was seen
}

func (t *patternReader) pattern() (string, error) {
	var b strings.Builder
	for t.i < len(t.text) {
		switch c := t.text[t.i]; {
		case c == '\\':
			e, err := t.escape(false)
			if err != nil {
				return "", err
			}
			b.WriteString(e)
		case c == '[' && t.sets:
			class, err := t.set(0)
			if err != nil {
				return "", err
			}
			b.WriteString(class)
		case c == '[':
			class, err := t.class()
			if err != nil {
				return "", err
			}
			b.WriteString(class)
		default:
			b.WriteByte(c)
			t.i++
		}
	}
	return b.String(), nil
}

// escape reads what a backslash begins.
func (t *patternReader) escape(inClass bool) (string, error) {
	rest := t.text[t.i:]
	if len(rest) < 2 {
		t.i = len(t.text)
		return rest, nil
	}
	if unicodeClass().MatchString(rest[:min(3, len(rest))]) {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", errors.New("invalid property name")
		}
		t.i += end + 1
		t.classes = true
		return property(rest[3:end], rest[1] == 'P', inClass)
	}
	n := 2
	for n < len(rest) && rest[n]&0xc0 == 0x80 {
		n++ // the rest of a character beyond ASCII
	}
	if rest[1] == 'u' && strings.HasPrefix(rest[2:], "{") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			n = end + 1
		}
	}
	t.i += n
	return rest[:n], nil
}

// class copies a class without nesting.
func (t *patternReader) class() (string, error) {
	var b strings.Builder
	for first := true; t.i < len(t.text); first = false {
		switch c := t.text[t.i]; {
		case c == '\\':
			e, err := t.escape(true)
			if err != nil {
				return "", err
			}
			b.WriteString(e)
			continue
		default:
			b.WriteByte(c)
			t.i++
			if c == ']' && !first {
				return b.String(), nil
			}
		}
	}
	return b.String(), nil
}

// maxNesting bounds how deep the classes of flag v may nest.
const maxNesting = 100

var errSetOperation = errors.New("invalid set operation in character class")

// set reads a class of flag v and writes it without what only v has:
// A--B is (?!B)A, A&&B is (?=B)A, and [A[B]] is (?:A|B).
func (t *patternReader) set(depth int) (string, error) {
	if depth > maxNesting {
		return "", fmt.Errorf("more than %d nested character classes", maxNesting)
	}
	t.i++
	negated := strings.HasPrefix(t.text[t.i:], "^")
	if negated {
		t.i++
	}
	var plain strings.Builder // operands that go into one class
	var others []string       // the rest: longer strings, and classes in classes
	var operator string       // -- or &&, once there was one
	var operands []string     // with an operator
	for {
		rest := t.text[t.i:]
		switch {
		case rest == "":
			return "", errors.New("unterminated character class")
		case rest[0] == ']':
			t.i++
			return finishSet(plain.String(), others, operands, operator, negated)
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "&&"):
			switch {
			case operator == "" && plain.Len()+len(others) == 0: // nothing is before it
				return "", errSetOperation
			case operator != "" && operator != rest[:2]: // the two cannot be mixed
				return "", errSetOperation
			}
			if operator == "" {
				operands = []string{union(plain.String(), others)}
			}
			operator = rest[:2]
			t.i += 2
			one, literal, err := t.operand(depth)
			if err != nil {
				return "", err
			}
			if literal {
				one = "[" + one + "]"
			}
			operands = append(operands, one)
			continue
		}
		if operator != "" {
			return "", errSetOperation
		}
		one, literal, err := t.operand(depth)
		switch {
		case err != nil:
			return "", err
		case literal:
			plain.WriteString(one)
		default:
			others = append(others, one)
		}
	}
}

// operand reads one operand of a class of flag v: what a class of flag u may hold
// as it is (literal), or else a pattern.
func (t *patternReader) operand(depth int) (text string, literal bool, err error) {
	rest := t.text[t.i:]
	switch {
	case rest == "" || rest[0] == ']':
		return "", false, errSetOperation
	case rest[0] == '[':
		text, err = t.set(depth + 1)
		return text, false, err
	case strings.HasPrefix(rest, `\q{`):
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", false, errors.New("invalid escape")
		}
		t.i += end + 1
		list := strings.Split(rest[3:end], "|")
		slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
		return "(?:" + strings.Join(list, "|") + ")", false, nil
	case rest[0] == '\\':
		text, err = t.escape(true)
		return text, true, err
	}
	n := 1
	for n < len(rest) && rest[n]&0xc0 == 0x80 {
		n++
	}
	t.i += n
	if rest[:n] == "-" && !strings.HasPrefix(rest[n:], "]") {
		return "-", true, nil // of a range: both its ends are literal
	}
	return rest[:n], true, nil
}

func union(plain string, others []string) string {
	if plain != "" {
		others = append(others, "["+plain+"]")
	}
	if len(others) == 1 {
		return others[0]
	}
	return "(?:" + strings.Join(others, "|") + ")"
}

func finishSet(plain string, others, operands []string, operator string, negated bool) (string, error) {
	if operator == "" && len(others) == 0 {
		if negated {
			return "[^" + plain + "]", nil
		}
		return "[" + plain + "]", nil
	}
	out := ""
	if operator == "" {
		out = union(plain, others)
	} else {
		look := "(?="
		if operator == "--" {
			look = "(?!"
		}
		for _, o := range operands[1:] {
			out += look + o + ")"
		}
		out = "(?:" + out + operands[0] + ")"
	}
	if negated {
		out = "(?:(?!" + out + `)[\s\S])`
	}
	return out, nil
}

// property writes \p{name}, or \P{name}, in a form that the engine knows.
func property(name string, negated, inClass bool) (string, error) {
	key, value, pair := strings.Cut(name, "=")
	table, native := "", ""
	switch {
	case pair && (key == "General_Category" || key == "gc"), !pair:
		table = value
		if !pair {
			table = key
		}
		if c, ok := unicode.CategoryAliases[table]; ok {
			table = c
		}
		if _, ok := unicode.Categories[table]; ok {
			native = table
		}
	case key == "Script" || key == "sc" || key == "Script_Extensions" || key == "scx":
		if long, ok := scripts[value]; ok {
			value = long
		}
		if _, ok := unicode.Scripts[value]; ok {
			native = value
		}
	}
	if native == "" && !pair {
		if long, ok := properties[name]; ok {
			name = long
		}
		if ranges := propertyRanges(name); ranges != nil {
			return writeRanges(ranges, negated, inClass), nil
		}
	}
	if native == "" {
		return "", fmt.Errorf("invalid property name %s", name)
	}
	letter := `\p{`
	if negated {
		letter = `\P{`
	}
	return letter + native + "}", nil
}

// A runeRange is inclusive.
type runeRange struct{ from, to rune }

// propertyRanges returns the characters of a binary property, sorted, or nil
// if it is not known.
func propertyRanges(name string) []runeRange {
	switch name {
	case "Any":
		return []runeRange{{0, unicode.MaxRune}}
	case "ASCII":
		return []runeRange{{0, 0x7f}}
	}
	if text, ok := emojiRanges[name]; ok {
		return readRanges(text)
	}
	var tables []*unicode.RangeTable
	if parts, ok := derived[name]; ok {
		for _, p := range parts {
			if t, ok := unicode.Categories[p]; ok {
				tables = append(tables, t)
			} else {
				tables = append(tables, unicode.Properties[p])
			}
		}
	} else if t, ok := unicode.Properties[name]; ok {
		tables = append(tables, t)
	} else {
		return nil
	}
	var list []runeRange
	for r := rune(0); r <= unicode.MaxRune; r++ {
		switch {
		case !unicode.In(r, tables...):
		case len(list) > 0 && list[len(list)-1].to == r-1:
			list[len(list)-1].to = r
		default:
			list = append(list, runeRange{r, r})
		}
	}
	return list
}

func writeRanges(list []runeRange, negated, inClass bool) string {
	if negated && inClass {
		list = complement(list)
	}
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, `\u{%x}`, r.from)
		if r.to > r.from {
			fmt.Fprintf(&b, `-\u{%x}`, r.to)
		}
	}
	switch {
	case inClass:
		return b.String()
	case negated:
		return "[^" + b.String() + "]"
	}
	return "[" + b.String() + "]"
}

func complement(list []runeRange) (out []runeRange) {
	next := rune(0)
	for _, r := range list {
		if r.from > next {
			out = append(out, runeRange{next, r.from - 1})
		}
		next = r.to + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, runeRange{next, unicode.MaxRune})
	}
	return out
}

// Written returns a pattern as the model wrote it, from what Translate made of it.
func (s *Script) Written(translated string) (string, bool) {
	text, ok := s.patterns[translated]
	return text, ok
}
