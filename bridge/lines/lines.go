// Package lines fits text into the width of a terminal. Widths are in cells: a character
// takes one, two, or none.
package lines

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Head returns how many bytes of a line fit into a width.
func Head(s string, width int) int {
	for at, r := range s {
		if width -= lipgloss.Width(string(r)); width < 0 {
			return at
		}
	}
	return len(s)
}

// Cut shortens a line to a width; if it does, the line ends with an ellipsis.
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

// Tail shortens a line to a width by cutting its beginning, so that its end, where a
// person types, stays in sight.
func Tail(s string, width int) string {
	runes := []rune(s)
	from, room := len(runes), width
	for from > 0 && room >= lipgloss.Width(string(runes[from-1])) {
		from--
		room -= lipgloss.Width(string(runes[from]))
	}
	return string(runes[from:])
}

// Hang breaks a line into parts that fit a width, after a word if one ends near there,
// and leaves nothing out. All parts but the first begin with indent, which must be
// narrower than width.
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
