package canon

import (
	"strings"
	"unicode"
)

// Words cuts a text into words (letters, digits, underscores) and what stands
// between them, in turn. Joined they are the text again.
func Words(text string) []string {
	var parts []string
	start, inside := 0, false
	for i, r := range text {
		if in := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'; in != inside {
			if i > start {
				parts = append(parts, text[start:i])
			}
			start, inside = i, in
		}
	}
	return append(parts, text[start:])
}

// lookalikes are the scripts that have letters which pass for Latin ones.
var lookalikes = []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu}

// Mixed reports whether a word has Latin letters and others that pass for them.
func Mixed(word string) bool {
	latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) && !Wide(r) })
	return latin && strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, lookalikes...) || Wide(r) })
}

// Wide reports whether a letter is a form of an ASCII one: fullwidth or mathematical.
func Wide(r rune) bool { return 0xFF01 <= r && r <= 0xFF5E || 0x1D400 <= r && r <= 0x1D7FF }
