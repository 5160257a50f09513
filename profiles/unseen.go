package profiles

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unseen finds what nobody sees in a pattern and what makes it match other tools than it
// seems to: a blank at an end or beside a comma of braces, and characters that show as
// nothing or as a blank. Offset is that of its first byte, -1 if there is none. Message
// says what it is, and hint what to write. A blank that is meant is written `\ `.
func Unseen(text string) (offset int, message, hint string) {
	offset, _, message = unseenIn(text)
	if offset < 0 {
		return offset, "", ""
	}
	clean := text
	for at, size := offset, 0; at >= 0; {
		if at, size, _ = unseenIn(clean); at >= 0 {
			clean = clean[:at] + clean[at+size:]
		}
	}
	if clean == "" {
		return offset, message, `"*" matches every tool`
	}
	return offset, message, fmt.Sprintf("write %q", clean)
}

// unseenIn finds the first such place, and how many bytes it has.
func unseenIn(text string) (offset, size int, message string) {
	if n := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace)); n > 0 {
		return 0, n, "the pattern begins with a blank"
	}
	depth := 0 // of braces
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		rest := text[i+n:]
		blanks := len(rest) - len(strings.TrimLeft(rest, " "))
		switch {
		case r == '\\' && blanks > 0:
			n++ // the blank is meant
		case r == '\\' && rest != "" && strings.ContainsRune(`\{},[`, rune(rest[0])):
			n++
		case r == '[':
			if end, err := classEnd(text, i); err == nil && Printable(text[i:end]) {
				n = end + 1 - i
			}
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r != utf8.RuneError && !seen(r) && !(unicode.IsSpace(r) && strings.TrimSpace(text[i:]) == ""):
			return i, n, fmt.Sprintf("the pattern has a character that nobody sees, %U", r)
		}
		switch {
		case depth > 0 && (r == '{' || r == ',') && blanks > 0:
			return i + n, blanks, "the pattern has a blank within braces"
		case unicode.IsSpace(r) && strings.TrimSpace(text[i:]) == "":
			return i, len(text) - i, "the pattern ends with a blank"
		case r == ' ' && depth > 0 && strings.ContainsAny(strings.TrimLeft(rest, " ")[:1], ",}"):
			return i, n + blanks, "the pattern has a blank within braces"
		}
		i += n
	}
	return -1, 0, ""
}

// Printable reports whether all characters of a text show.
func Printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !seen(r) })
}

// seen reports whether a character shows, as something else than a blank of another
// kind than U+0020.
func seen(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && r != '\u2800' && r != '\ufffc'
}
