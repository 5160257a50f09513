package tap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on text of a server that is shown to people: names, lines of its log,
// messages.
const (
	MaxName    = 200
	MaxLine    = 500
	MaxMessage = 1000
)

// Escape returns s cut after limit characters, with everything that does not
// print (control, bidi, zero-width and tag characters, broken UTF-8) written as
// Go escapes it, so that a terminal or a log shows it and does not obey it.
func Escape(s string, limit int) string {
	clean, count := true, 0
	for _, r := range s {
		count++
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			clean = false
		}
	}
	if clean && count <= limit {
		return s
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == limit:
			fmt.Fprintf(&b, "... (%d more bytes)", len(s)-i)
			return b.String()
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// Size writes a number of bytes for people: "16 MB", "64 KB", "1000 bytes".
func Size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// Levels are those of a log, the least severe first.
var Levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Severity is the place of a level among Levels, -1 for none of them.
func Severity(level string) int { return slices.Index(Levels, level) }
