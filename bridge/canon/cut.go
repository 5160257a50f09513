package canon

import (
	"fmt"
	"strings"
)

// Cut returns text with at most n characters, and "…" behind them if there were
// more.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// CutBytes returns text with at most n bytes, ended at a character, and "…" behind
// them if there were more.
func CutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}

// Clip returns a text of at most most bytes: text itself or, where it is
// longer, its beginning and how much is left out. Most is at least 64.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const room = 40 // for the longest of the marks
	head := strings.TrimSuffix(CutBytes(text, most-room), "…")
	return head + fmt.Sprintf("… %s left out", appendCount(nil, len(text)-len(head), "byte"))
}
