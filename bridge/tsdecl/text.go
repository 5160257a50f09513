package tsdecl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text from an upstream fit for one line that a model reads.
// Control characters, terminal sequences, bidi, zero-width and tag characters
// are removed, white space (line breaks too) becomes single spaces, and what is
// left is cut after limit characters. What was done is said in the text:
// "… (+1,024 characters)" after a cut, "[3 hidden characters removed]" after
// a removal. A limit of 0 or less means no cut.
func Plain(text string, limit int) string {
	var b strings.Builder
	var (
		kept, hidden int
		space        bool // a space is owed before the next character
	)
	for i := 0; i < len(text); {
		if text[i] == 0x1b {
			i += escapeLen(text[i:])
			hidden++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.IsSpace(r):
			space = kept > 0
			i += n
			continue
		case joiner(r):
			// Part of emoji and of some scripts, so no sign of mischief.
			i += n
			continue
		case invisible(r):
			hidden++
			i += n
			continue
		}
		owed := 0
		if space {
			owed = 1
		}
		if limit > 0 && kept+owed+1 > limit {
			fmt.Fprintf(&b, "… (+%s characters)", thousands(utf8.RuneCountInString(text[i:])))
			break
		}
		if space {
			b.WriteByte(' ')
			kept++
			space = false
		}
		b.WriteRune(r) // an invalid byte becomes U+FFFD
		kept++
		i += n
	}
	if hidden > 0 {
		plural := "s"
		if hidden == 1 {
			plural = ""
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "[%s hidden character%s removed]", thousands(hidden), plural)
	}
	return b.String()
}

// escapeLen is the length of the terminal sequence that s begins with: the
// whole of "ESC [ ... letter", else the escape character alone.
func escapeLen(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s) && i < 32; i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
	}
	return 2
}

// joiner reports whether r is one of the invisible characters that ordinary
// text has: joiners, soft hyphen, emoji variation, byte order mark.
func joiner(r rune) bool {
	return strings.ContainsRune("\u200c\u200d\u00ad\ufe0f\ufeff", r)
}

// invisible reports whether r shows nothing, or changes how its neighbours
// show: controls, format characters (bidi, zero width, tags), private use,
// variation selectors, and the letters that are blank.
func invisible(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, r >= 0x180b && r <= 0x180f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x034f:
		return true
	}
	return false
}

// thousands writes n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
