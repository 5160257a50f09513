package wording

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// address finds the host in a web or mail address. In a web address, the part
// before an @ is hidden in display form.
var address = regexp.MustCompile(`(?:[A-Za-z][A-Za-z0-9+.-]*://|[^\s@<>"',;:/]@)([^\s/?#"'<>@:,;()\[\]]+)`)

// hostNames are arguments whose whole value is a host.
var hostNames = []string{"host", "hostname", "domain", "server"}

const (
	searchedHosts      = 64 << 10 // bytes of one argument
	maxSuspiciousHosts = 3        // of one argument
)

// suspiciousHosts returns warnings about hosts in an argument that may not be what
// they look like.
func suspiciousHosts(f Field) []phrase {
	text := strings.Join(f.Lines, "\n")
	text = text[:min(len(text), searchedHosts)]
	var odd []phrase
	look := func(host string) {
		if why := suspiciousHost(host); why != "" {
			odd = append(odd, phrase{
				say("the host %s in %s %s", clipMiddle(host, 50), f.Name, ours(why)).plain,
				say("the host %s in %s %s", host, ours(f.name()), ours(why)).dialog,
			})
		}
	}
	if f.Text && slices.Contains(hostNames, strings.ToLower(f.Name)) {
		look(text)
	}
	for _, m := range address.FindAllStringSubmatch(text, 1000) {
		if look(m[1]); len(odd) >= maxSuspiciousHosts {
			break
		}
	}
	return odd[:min(len(odd), maxSuspiciousHosts)]
}

// suspiciousHost says why a host could be mistaken for another; empty if not.
func suspiciousHost(host string) string {
	host = strings.ToLower(host)
	for label := range strings.SplitSeq(host, ".") {
		if strings.HasPrefix(label, "xn--") {
			return "is an encoded international name (xn--): it may look like another"
		}
	}
	var scripts []string
	for _, c := range host {
		if c < 0x80 && !('a' <= c && c <= 'z') || !unicode.IsLetter(c) {
			continue
		}
		if s := scriptOf(c); !slices.Contains(scripts, s) {
			scripts = append(scripts, s)
		}
	}
	plain := !strings.ContainsFunc(host, func(c rune) bool { return c >= 0x80 })
	switch {
	case plain:
		return ""
	case len(scripts) > 1:
		return "mixes " + strings.Join(scripts, " and ") + " letters"
	case len(scripts) == 1 && scripts[0] != "Latin":
		return "is written in " + scripts[0] + " letters"
	default:
		return "holds characters that are not plain ones"
	}
}

// scriptOf names the script of a letter.
func scriptOf(c rune) string {
	for _, name := range []string{"Latin", "Cyrillic", "Greek", "Armenian", "Hebrew", "Arabic", "Han", "Hiragana", "Katakana", "Hangul", "Cherokee"} {
		if unicode.Is(unicode.Scripts[name], c) {
			return name
		}
	}
	return "other"
}
