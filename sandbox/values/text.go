package values

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendJSON appends s as a JSON string. What is not UTF-8 (half of a
// surrogate pair) becomes U+FFFD.
func AppendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// Accessor writes the access to a member of that name: .name or ["a name"].
func Accessor(name string) string {
	if identifier(name) {
		return "." + name
	}
	return "[" + QuoteName(name) + "]"
}

// identifier reports whether a name can follow a dot.
func identifier(name string) bool {
	for i, c := range name {
		switch {
		case c == '_', c == '$', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return name != ""
}

// QuoteName writes a name as a JSON string, cut to what a message has room for.
func QuoteName(name string) string { return string(AppendJSON(nil, Cut(name, 80))) }

// Cut cuts s to n bytes, between characters, and marks the cut.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	if n < len(mark) {
		return ""
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// article puts a or an before a noun.
func article(noun string) string {
	if strings.ContainsAny(noun[:min(1, len(noun))], "AEIOU") {
		return "an " + noun
	}
	return "a " + noun
}

// LowerFirst makes the first letter lower case, unless the word is all capitals.
func LowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || len(s) > n && s[n] >= 'A' && s[n] <= 'Z' {
		return s
	}
	return strings.ToLower(string(r)) + s[n:]
}

// Size writes a number of bytes for people: 64 MB, 12.5 MB, 900 bytes.
func Size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	case n == 1:
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// Thousands writes a number with thousands separators: 1,000.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Nearest returns the name of the list that differs least, if it differs little.
func Nearest(name string, list []string) string {
	best, distance := "", min(3, len(name)/5+1)
	if len(name) > 100 {
		return ""
	}
	for _, s := range list {
		if abs(len(s)-len(name)) > distance {
			continue
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(s), distance)
		if d < distance || d == distance && best == "" {
			best, distance = s, d
		}
	}
	return best
}

// editDistance counts the edits between two names, up to limit+1.
func editDistance(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last, least := row[0], i
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := last
			if a[i-1] != b[j-1] {
				cost = 1 + min(last, row[j], row[j-1])
			}
			last, row[j] = row[j], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

func abs(n int) int { return max(n, -n) }
