package flow

import (
	"regexp"
	"slices"
	"strings"
)

// A value is a short text that identifies somebody or something, in one spelling.
type value struct{ kind, text string }

// The kinds of value, as people are told of them.
const (
	mailAddress = "mail address"
	account     = "account number"
	card        = "card number"
	host        = "host"
	uuid        = "UUID"
	token       = "token"
)

// minNumber is how many digits the shortest number has that can be a value.
const minNumber = 13

// A place is a value and where it stands in a text.
type place struct {
	value
	start, end int
}

var (
	uuids = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	mails = regexp.MustCompile(`^[a-z0-9._%+'-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}$`)
	hosts = regexp.MustCompile(`^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z]{2,}$`)
)

// public are hosts that say nothing: they are in every other text.
var public = []string{"github.com", "gitlab.com", "bitbucket.org", "google.com", "youtube.com", "wikipedia.org", "w3.org", "schema.org", "npmjs.com", "npmjs.org", "pypi.org", "golang.org", "go.dev",
	"mozilla.org", "microsoft.com", "apple.com", "amazon.com", "amazonaws.com", "githubusercontent.com", "docker.com", "docker.io", "stackoverflow.com", "slack.com", "notion.so", "linear.app",
	"example.com", "example.org", "example.net", "modelcontextprotocol.io", "json-schema.org", "jsdelivr.net", "cloudflare.com", "googleapis.com", "anthropic.com", "openai.com", "readthedocs.io"}

// words are the bytes that can be part of a value; those that separate are others.
var words = bytesOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._%+-'")

// maxWord is how long a word may be that is looked at.
const maxWord = 128

// placesIn finds the values in a text.
func placesIn(s string) (all []place) {
	digits, afterScheme := 0, false
	for i := 0; i < len(s); {
		if !words[s[i]] {
			afterScheme = s[i] == '/' && i > 1 && s[i-1] == '/' && s[i-2] == ':'
			i++
			continue
		}
		start := i
		for i < len(s) && words[s[i]] {
			if '0' <= s[i] && s[i] <= '9' {
				digits++
			}
			i++
		}
		end := i
		for end > start && strings.IndexByte(".'-%+", s[end-1]) >= 0 {
			end--
		}
		for start < end && strings.IndexByte(".'-", s[start]) >= 0 {
			start++
		}
		if end-start < minText || end-start > maxWord {
			afterScheme = false
			continue
		}
		if v, ok := valueOf(s[start:end], afterScheme); ok {
			all = append(all, place{v, start, end})
		}
		afterScheme = false
	}
	if digits < minNumber {
		return all
	}
	for i := 0; i < len(s); i++ {
		alone := i == 0 || !letter(s[i-1]) && !digit(s[i-1])
		switch {
		case !alone:
		case digit(s[i]) && (i == 0 || s[i-1] != '.'):
			number, end := grouped(s[i:], digit)
			if isCard(number) && (i+end == len(s) || !letter(s[i+end])) {
				all = append(all, place{value{card, number}, i, i + end})
			}
			i += end - 1
		case i+15 <= len(s) && letter(s[i]) && letter(s[i+1]) && digit(s[i+2]) && digit(s[i+3]):
			number, _ := grouped(s[i:], func(c byte) bool { return letter(c) || digit(c) })
			number = strings.ToUpper(number[:min(len(number), 34)])
			for n := len(number); n >= 15; n-- { // the words behind it may look like a part of it
				if isIBAN(number[:n]) {
					all = append(all, place{value{account, number[:n]}, i, spread(s, i, n)})
					break
				}
			}
		}
	}
	return all
}

// grouped reads bytes of a kind that stand in groups with one blank or dash between, and returns how
// far they go.
func grouped(s string, is func(byte) bool) (text string, end int) {
	var b []byte
	for i := 0; i < len(s) && len(b) < 64; i++ {
		switch {
		case is(s[i]):
			b, end = append(b, s[i]), i+1
		case (s[i] == ' ' || s[i] == '-') && i+1 < len(s) && is(s[i+1]):
		default:
			return string(b), end
		}
	}
	return string(b), end
}

// spread returns where the first n letters and digits of a text from a place on end.
func spread(s string, from, n int) int {
	for ; n > 0; from++ {
		if letter(s[from]) || digit(s[from]) {
			n--
		}
	}
	return from
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func valuesIn(s string) (all []value) {
	had := map[value]bool{}
	for _, p := range placesIn(s) {
		if !had[p.value] {
			had[p.value] = true
			all = append(all, value{p.kind, strings.Clone(p.value.text)}) // not with the whole text behind it
		}
	}
	return all
}

// valueOf says what a word is. Hosts count where they follow a scheme, or have a name that
// is no file's.
func valueOf(s string, afterScheme bool) (value, bool) {
	low := strings.ToLower(s)
	switch at := strings.IndexByte(low, '@'); {
	case at > 0 && mails.MatchString(low):
		return value{mailAddress, low}, true
	case at > 0:
		return value{}, false
	case len(low) == 36 && uuids.MatchString(low):
		return value{uuid, low}, true
	case isToken(s):
		return value{token, s}, true
	case strings.IndexByte(low, '.') > 0 && hosts.MatchString(low) && (afterScheme || strings.Count(low, ".") >= 2 && knownEnd(low)) && !isPublic(low):
		return value{host, low}, true
	}
	return value{}, false
}

// knownEnd reports whether a name ends as hosts do that are not written as an address.
func knownEnd(low string) bool {
	end := low[strings.LastIndexByte(low, '.')+1:]
	return slices.Contains([]string{"com", "net", "org", "io", "dev", "app", "ai", "cloud", "internal", "local", "corp", "lan", "eu", "de", "uk", "fr", "nl", "ch", "at", "us", "ru", "cn", "jp"}, end)
}

func isPublic(low string) bool {
	return slices.ContainsFunc(public, func(p string) bool { return low == p || strings.HasSuffix(low, "."+p) })
}

// isToken reports whether a word is made as secrets are: long, of small and capital letters
// and digits that are mixed.
func isToken(s string) bool {
	if len(s) < 16 || strings.ContainsAny(s, "@.%'") {
		return false
	}
	var small, capital, digits, changes int
	kind := func(c byte) int {
		switch {
		case 'a' <= c && c <= 'z':
			return 1
		case 'A' <= c && c <= 'Z':
			return 2
		case digit(c):
			return 3
		}
		return 0
	}
	for i := range len(s) {
		switch kind(s[i]) {
		case 1:
			small++
		case 2:
			capital++
		case 3:
			digits++
		}
		if i > 0 && kind(s[i]) != kind(s[i-1]) {
			changes++
		}
	}
	return digits >= 3 && small+capital >= 4 && capital >= 2 && changes >= 5
}

// isCard reports whether digits are the number of a card: by its length, its first digit
// and its checksum (Luhn).
func isCard(digits string) bool {
	if n := len(digits); n != 13 && n != 15 && n != 16 && n != 19 || digits[0] < '2' || digits[0] > '6' || strings.Trim(digits, digits[:1]) == "" {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isIBAN reports whether a text is an international account number, by its checksum.
func isIBAN(s string) bool {
	if len(s) < 15 || len(s) > 34 || !digit(s[2]) || !digit(s[3]) || digit(s[0]) || digit(s[1]) {
		return false
	}
	rest := 0
	for _, c := range s[4:] + s[:4] {
		switch {
		case c >= '0' && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case c >= 'A' && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		default:
			return false
		}
	}
	return rest == 1
}
