package flow

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A view is one reading of a text: what it says once decoded, folded, and for each byte of
// that where it stands in the text.
type view struct {
	folded []byte
	at     []int32
	plain  string // decoded, not folded
	how    string // the encoding; empty for none
}

// fold returns a text in lower case without white space and characters that nobody sees.
func fold(s string) view {
	v := view{folded: make([]byte, 0, len(s)), at: make([]int32, 0, len(s)), plain: s}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				v.folded, v.at = append(v.folded, c), append(v.at, int32(i))
			} else if !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
				had := len(v.folded)
				v.folded = utf8.AppendRune(v.folded, unicode.ToLower(r))
				for range len(v.folded) - had {
					v.at = append(v.at, int32(i))
				}
			}
			i += n
			continue
		case c <= ' ' || c == 0x7f:
		case 'A' <= c && c <= 'Z':
			v.folded, v.at = append(v.folded, c+'a'-'A'), append(v.at, int32(i))
		default:
			v.folded, v.at = append(v.folded, c), append(v.at, int32(i))
		}
		i++
	}
	return v
}

// decoded returns a view of what a part of the text that begins at start decodes to; place says
// where a byte of that stands in the part.
func decoded(how, plain string, start int, place func(i int) int) view {
	v := fold(plain)
	v.how = how
	for i, at := range v.at {
		v.at[i] = int32(start + place(int(at)))
	}
	return v
}

// runsOf calls f with the parts of a text, at least that long, that are made of some bytes, with
// the line breaks, written or escaped, and what else separates them within it.
func runsOf(s string, least int, is, separates *[256]bool, f func(start, end int)) {
	for i := 0; i < len(s); {
		if !is[s[i]] {
			i++
			continue
		}
		start := i
		for i < len(s) && (is[s[i]] || separates[s[i]]) {
			i++
		}
		if i-start >= least {
			f(start, i)
		}
	}
}

func bytesOf(all string) (is [256]bool) {
	for i := range len(all) {
		is[all[i]] = true
	}
	return is
}

var (
	base64Bytes  = bytesOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
	base64Breaks = bytesOf("\r\n=")
	hexBytes     = bytesOf("0123456789ABCDEFabcdef")
	hexBreaks    = bytesOf(" :\r\n\\x")
)

const (
	minBase64 = MinRun * 4 / 3
	minHex    = MinRun * 2
	// In texts up to that many bytes, half as much may be a short value.
	maxShort = 8 << 10
)

// viewsOf returns the readings of a text.
func viewsOf(s string) []view {
	all := []view{fold(s)}
	if strings.ContainsRune(s, '\\') {
		all = append(all, unescaped(s))
	}
	if strings.ContainsAny(s, "%+") { // a form's spaces are +, and it may have no other escape
		all = append(all, unquoted(s))
	}
	shorter := 1
	if len(s) <= maxShort {
		shorter = MinRun / block
	}
	runsOf(s, minBase64/shorter, &base64Bytes, &base64Breaks, func(start, end int) {
		for skip := range 4 { // it may begin within a group of four
			if v, ok := fromBase64(s, start+skip, end); ok {
				all = append(all, v)
			}
		}
	})
	runsOf(s, minHex/shorter, &hexBytes, &hexBreaks, func(start, end int) {
		for skip := range 2 {
			if v, ok := fromHex(s, start+skip, end); ok {
				all = append(all, v)
			}
		}
	})
	return all
}

// unescaped reads the escapes of JSON strings.
func unescaped(s string) view {
	var b strings.Builder
	var at []int
	put := func(text string, i int) {
		b.WriteString(text)
		for range len(text) {
			at = append(at, i)
		}
	}
	for i := 0; i < len(s); {
		n := 1
		switch {
		case s[i] != '\\' || i+1 == len(s):
			put(s[i:i+1], i)
		case s[i+1] == 'u' && i+6 <= len(s):
			n = 6
			code, err := strconv.ParseUint(s[i+2:i+6], 16, 32)
			r := rune(code)
			if err == nil && r >= 0xd800 && r < 0xdc00 && i+12 <= len(s) && s[i+6:i+8] == `\u` {
				if low, err := strconv.ParseUint(s[i+8:i+12], 16, 32); err == nil && low >= 0xdc00 && low < 0xe000 {
					r, n = (r-0xd800)<<10|(rune(low)-0xdc00)+0x10000, 12
				}
			}
			if err != nil {
				put(s[i:i+1], i)
				n = 1
			} else {
				put(string(r), i)
			}
		default:
			n = 2
			put(map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f"}[s[i+1]], i)
			if !strings.ContainsRune("ntrbf", rune(s[i+1])) {
				put(s[i+1:i+2], i)
			}
		}
		i += n
	}
	return decoded("JSON", b.String(), 0, func(i int) int { return at[i] })
}

// unquoted reads the escapes of URLs and forms.
func unquoted(s string) view {
	var b strings.Builder
	var at []int
	for i := 0; i < len(s); i++ {
		at = append(at, i)
		if s[i] == '%' && i+3 <= len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.Write(c)
				i += 2
				continue
			}
		}
		if s[i] == '+' {
			b.WriteByte(' ')
		} else {
			b.WriteByte(s[i])
		}
	}
	return decoded("URL", b.String(), 0, func(i int) int { return at[i] })
}

// fromBase64 reads a part of a text, to the last whole byte.
func fromBase64(s string, start, end int) (view, bool) {
	if end <= start {
		return view{}, false
	}
	clean, at := make([]byte, 0, end-start), make([]int32, 0, end-start)
	for i := start; i < end; i++ {
		switch c := s[i]; c {
		case '-':
			clean, at = append(clean, '+'), append(at, int32(i))
		case '_':
			clean, at = append(clean, '/'), append(at, int32(i))
		case '=', '\r', '\n', '\\':
		default:
			clean, at = append(clean, c), append(at, int32(i))
		}
	}
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	plain := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, err := base64.RawStdEncoding.Decode(plain, clean)
	if err != nil || n < block || !readable(plain[:n]) {
		return view{}, false
	}
	return decoded("base64", string(plain[:n]), 0, func(i int) int { return int(at[min(i*4/3, len(at)-1)]) }), true
}

// fromHex reads a part of a text, to the last whole byte.
func fromHex(s string, start, end int) (view, bool) {
	clean, at := make([]byte, 0, end-start), make([]int32, 0, end-start)
	for i := start; i < end; i++ {
		if s[i] == '0' && i+1 < end && s[i+1] == 'x' {
			i++
			continue
		}
		if strings.IndexByte("0123456789abcdefABCDEF", s[i]) >= 0 {
			clean, at = append(clean, s[i]), append(at, int32(i))
		}
	}
	clean = clean[:len(clean)/2*2]
	plain := make([]byte, len(clean)/2)
	if n, err := hex.Decode(plain, clean); err != nil || n < block || !readable(plain) {
		return view{}, false
	}
	return decoded("hexadecimal", string(plain), 0, func(i int) int { return int(at[min(2*i, len(at)-1)]) }), true
}

// readable reports whether bytes may be text: words that only look like an encoding are
// not. The ends may be cut within a character.
func readable(b []byte) bool {
	odd := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 || r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			odd++
		}
		i += max(n, 1)
	}
	return odd <= 6 || odd*8 <= len(b)
}

// decodedWhole returns the text that an answer has in base64, such as a file's contents.
func decodedWhole(s string) (string, bool) {
	if len(s) < 2*minBase64 || strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f || !base64Bytes[r] && !base64Breaks[r] }) {
		return "", false
	}
	v, ok := fromBase64(s, 0, len(s))
	return v.plain, ok && utf8.ValidString(v.plain)
}
