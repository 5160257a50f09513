// Package lines fits text into the width of a terminal, in which a character takes
// one place, two, or none.
package lines

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Head is as much of a line as fits into a width, in bytes.
func Head(s string, width int) int {
	for at, r := range s {
		if width -= lipgloss.Width(string(r)); width < 0 {
			return at
		}
	}
	return len(s)
}

// Cut shortens a line to a width, and shows that.
func Cut(s string, width int) string {
	if Head(s, width) == len(s) {
		return s
	}
	return s[:Head(s, width-1)] + "…"
}

// Pad fills a line up to a width with spaces.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

// Tail keeps the end of a line that is too long for a width: where one types.
func Tail(s string, width int) string {
	runes := []rune(s)
	from, room := len(runes), width
	for from > 0 && room >= lipgloss.Width(string(runes[from-1])) {
		from--
		room -= lipgloss.Width(string(runes[from]))
	}
	return string(runes[from:])
}

// Hang breaks a line where a width ends, after a word if one ends near there;
// nothing of it is left out. All parts but the first begin with an indent. The
// width is more than the indent.
func Hang(s string, width int, indent string) []string {
	var all []string
	for from := ""; ; from = indent {
		n := Head(s, width-len(from))
		if at := strings.LastIndexByte(s[:n], ' '); n < len(s) && at > n/2 {
			n = at + 1
		}
		if all = append(all, from+s[:n]); n == len(s) {
			return all
		}
		s = s[n:]
	}
}
