package values

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// join puts the entries of one object on one line if they fit, as Node's
// reduceToSingleString does.
func (in *inspector) join(o *goja.Object, out []string, base, open, end string, list bool, depth int) string {
	entries := len(out)
	if list && entries > arrayRun {
		out = in.columns(out, o)
	}
	if base != "" {
		base += " "
	}
	if in.current-depth < compactLevels && entries == len(out) {
		start := len(out) + in.indent + Width(open) + Width(base) + 10
		total := len(out) + start
		for _, s := range out {
			total += Width(s)
		}
		if total <= breakLength && !strings.Contains(base, "\n") {
			line := strings.Join(out, ", ")
			if !strings.Contains(line, "\n") {
				return base + open + " " + line + " " + end
			}
		}
	}
	pad := "\n" + strings.Repeat(" ", in.indent)
	return base + open + pad + "  " + strings.Join(out, ","+pad+"  ") + pad + end
}

// columns groups the entries of a long array, as Node's groupArrayElements does.
func (in *inspector) columns(out []string, o *goja.Object) []string {
	n := len(out)
	if strings.HasPrefix(out[n-1], "... ") && strings.Contains(out[n-1], " more item") {
		n--
	}
	total, longest := 0, 0
	for _, s := range out[:n] {
		w := Width(s)
		total += w + 2
		longest = max(longest, w)
	}
	actual := longest + 2
	if actual*3+in.indent >= breakLength || !(float64(total)/float64(actual) > 5 || longest <= 6) {
		return out
	}
	bias := math.Sqrt(float64(actual) - float64(total)/float64(len(out)))
	biased := math.Max(float64(actual)-3-bias, 1)
	columns := int(math.Min(math.Min(
		math.Round(math.Sqrt(2.5*biased*float64(n))/biased),
		math.Floor(float64(breakLength-in.indent)/float64(actual))),
		math.Min(compactLevels*4, 15)))
	if columns <= 1 {
		return out
	}
	var widths []int
	for i := range columns {
		w := 0
		for j := i; j < n; j += columns {
			w = max(w, Width(out[j]))
		}
		widths = append(widths, w+2)
	}
	numbers := true
	for i := range n {
		if v := in.get(o, strconv.Itoa(i)); v != nil {
			switch v.Export().(type) {
			case int64, float64, *big.Int:
				continue
			}
		}
		numbers = false
		break
	}
	var rows []string
	for i := 0; i < n; i += columns {
		last := min(i+columns, n)
		var b strings.Builder
		for j := i; j < last; j++ {
			cell := out[j]
			if j < last-1 {
				cell += ", "
			}
			pad := strings.Repeat(" ", max(0, widths[j-i]-Width(cell)))
			switch {
			case numbers && j == last-1:
				b.WriteString(strings.Repeat(" ", max(0, widths[j-i]-2-Width(cell))) + cell)
			case numbers:
				b.WriteString(pad + cell)
			case j == last-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		rows = append(rows, b.String())
	}
	return append(rows, out[n:]...)
}

// Width returns how many columns a text takes, one for each character.
func Width(s string) int { return utf8.RuneCountInString(s) }

func keyText(key string) string {
	if identifier(key) {
		return key
	}
	return quoteJS(key)
}

// quoteJS writes a string as Node does: in single quotes, or in others where
// that saves escapes.
func quoteJS(s string) string {
	tail := ""
	if len(s) > inspectString {
		rest := len(s) - inspectString
		s = Cut(s, inspectString)
		tail = "... " + strconv.Itoa(rest) + " more characters"
	}
	q := byte('\'')
	if strings.Contains(s, "'") {
		if !strings.Contains(s, `"`) {
			q = '"'
		} else if !strings.ContainsAny(s, "`$") {
			q = '`'
		}
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c == '\v':
			b.WriteString(`\v`)
		case c < ' ' || c >= 0x7f && c < 0xa0:
			b.WriteString(`\x` + strings.ToUpper(string([]byte{hexDigits[c>>4], hexDigits[c&15]})))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(q)
	return b.String() + tail
}

func without(list []string, drop ...string) (out []string) {
	for _, s := range list {
		if !slices.Contains(drop, s) {
			out = append(out, s)
		}
	}
	return out
}
