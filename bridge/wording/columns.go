package wording

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// columns returns the width of a text in a terminal.
func columns(s string) int {
	n := 0
	for _, c := range s {
		n += columnsOf(c)
	}
	return n
}

// columnsOf returns the width of a character in a terminal.
func columnsOf(c rune) int {
	if isLetterMark(c) {
		return 0
	}
	switch width.LookupRune(c).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// firstColumns returns as much of s as fits into n columns.
func firstColumns(s string, n int) string {
	for i, c := range s {
		if n -= columnsOf(c); n < 0 {
			return s[:i]
		}
	}
	return s
}

// clipMiddle cuts the middle out of a text that is wider than width columns, and
// says how much was cut: what matters in a path or a command often comes last.
func clipMiddle(s string, width int) string { return clipShare(s, width, 1.0/3) }

// clipShare is clipMiddle with the end's share of what is kept.
func clipShare(s string, width int, share float64) string {
	if columns(s) <= width {
		return s
	}
	runes := []rune(s)
	keep := max(width-len("… 1000000 more …"), 2)
	behind := int(math.Ceil(float64(keep) * share))
	head, tail := len(firstColumns(s, keep-behind)), len(s)
	for used := 0; tail > head; {
		c, size := utf8.DecodeLastRuneInString(s[:tail])
		if used += columnsOf(c); used > behind {
			break
		}
		tail -= size
	}
	for tail < len(s) { // a mark is cut with its letter
		c, size := utf8.DecodeRuneInString(s[tail:])
		if !isLetterMark(c) {
			break
		}
		tail += size
	}
	left := len(runes) - utf8.RuneCountInString(s[:head]) - utf8.RuneCountInString(s[tail:])
	return fmt.Sprintf("%s… %d more …%s", s[:head], left, s[tail:])
}

// isLetterMark reports whether a character belongs to the one before it.
func isLetterMark(c rune) bool { return unicode.IsMark(c) }
