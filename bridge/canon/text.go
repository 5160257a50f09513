package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// JSON writes a value as people, models and scripts read it: <, > and & are left
// as they are.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

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

// Fit returns text in at most n characters: if there are more, the last one is "…".
func Fit(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
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
	return head + fmt.Sprintf("… %s left out", Counted(len(text)-len(head), "byte"))
}

// Counted is "1 value" or "1,482 values".
func Counted(n int, what string) string { return string(appendCount(nil, n, what)) }

// Thousands is a number with commas: 1,482.
func Thousands(n int) string { return string(appendThousands(nil, n)) }

// Size is a number of bytes: 64 KB, 1.5 MB.
func Size(n int) string {
	switch {
	case n >= 1<<20:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MB"
	case n >= 1<<10:
		return strconv.Itoa(n>>10) + " KB"
	default:
		return strconv.Itoa(n) + " bytes"
	}
}

// appendCount appends what Counted returns.
func appendCount(b []byte, n int, what string) []byte {
	b = append(append(appendThousands(b, n), ' '), what...)
	if n != 1 {
		b = append(b, 's')
	}
	return b
}

func appendThousands(b []byte, n int) []byte {
	digits := strconv.Itoa(n)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b = append(b, ',')
		}
		b = append(b, digits[i])
	}
	return b
}
