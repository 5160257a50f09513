package profiles

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
)

// cleanPath is clean() in conditions: the shortest name for the same place, found
// by looking only at the name; links are never followed. Backslashes of a Windows
// path (C:\..., \\server\...) become slashes. In any other path nobody can tell
// whether a backslash is a separator, so there is no answer.
func cleanPath(p string) (string, error) {
	if p == "" {
		return "", errors.New("clean: the path is empty")
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", errors.New("clean: the path holds a zero byte")
	}
	if strings.Contains(p, `\`) {
		drive := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && isLetter(p[0])
		if !drive && !strings.HasPrefix(p, `\\`) {
			return "", errors.New("clean: cannot tell whether a backslash separates in this path")
		}
		p = strings.ReplaceAll(p, `\`, "/")
	}
	return path.Clean(p), nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// hostOf is host() in conditions: the host of an absolute URL in lower case,
// without port, user and final dot; an address in its shortest form. There is no
// answer for a URL in which two parsers could see two different hosts.
func hostOf(raw string) (string, error) {
	if strings.ContainsAny(raw, "\\\t\r\n ") {
		return "", errors.New("host: the URL holds a character that readers take differently")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("host: not a URL")
	}
	if u.Scheme == "" || u.Opaque != "" {
		return "", errors.New("host: not an absolute URL")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return "", errors.New("host: the URL has no host")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String(), nil
	}
	for i := 0; i < len(host); i++ {
		if c := host[i]; !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return "", errors.New("host: the host holds a character that readers take differently")
		}
	}
	// 2130706433, 0x7f.1 and 127.1 are 127.0.0.1 to many readers.
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || '0' <= last[0] && last[0] <= '9' && (strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "") {
		return "", errors.New("host: the host is a number that readers take differently")
	}
	return host, nil
}

// HostNamed returns the fact about a host that an argument names, by a URL or by
// itself. Whatever two programs could read in two ways is doubtful: a URL with a
// user before the host looks like another host to people.
//
// It is bare if nothing could be carried in it, or be done by it: a host with a plain
// path, on the usual port. An address in a network at hand (a number, or a name of
// one part) is not, since what answers there may take orders by address, and neither
// is a host that is made to look like another one. Of this machine, any port is usual.
func HostNamed(param, text string) HostFact {
	f := HostFact{Param: param}
	raw := text
	if !strings.Contains(text, "://") {
		if strings.ContainsAny(text, "/?#@") {
			f.Doubt = "it is neither a host nor an absolute URL"
			return f
		}
		raw = "https://" + text
	}
	host, err := hostOf(raw)
	if err != nil {
		f.Doubt = strings.TrimPrefix(err.Error(), "host: ")
		return f
	}
	if u, err := url.Parse(raw); err != nil || u.User != nil {
		f.Doubt = "the URL has a user name"
		return f
	}
	if scheme, _, _ := strings.Cut(raw, "://"); !slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(scheme)) {
		f.Doubt = "it is no address of the web"
		return f
	}
	f.Name, f.Bare = host, saysOnlyWhere(raw, host)
	return f
}

// saysOnlyWhere reports whether an address of the web says where, and nothing else.
func saysOnlyWhere(raw, host string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" || strings.Contains(raw, "#") {
		return false
	}
	if !local(host) && (u.Port() != "" && u.Port() != "80" && u.Port() != "443" || !ordinaryHost(host)) {
		return false
	}
	path := strings.ReplaceAll(u.EscapedPath(), "/@", "/") // as in the name of a package, or of somebody
	if len(path) > mostBarePath || strings.ContainsAny(path, "%=;&$*,:@") {
		return false
	}
	return !slices.ContainsFunc(strings.FieldsFunc(u.Path, func(c rune) bool { return strings.ContainsRune("/-_.~+@", c) }), coded)
}

// mostBarePath is how long the path of an address may be that says only where.
const mostBarePath = 120

// ordinaryHost reports whether a name is one of the public network and carries nothing:
// neither a number, nor a word in another script or a code, nor another host's name
// before its own, as "example.com.login.example" has.
func ordinaryHost(host string) bool {
	labels := strings.Split(host, ".")
	if _, err := netip.ParseAddr(host); err == nil || len(labels) < 2 || len(labels) > 5 {
		return false
	}
	for i, label := range labels {
		if len(label) > 30 || strings.HasPrefix(label, "xn--") || coded(label) {
			return false
		}
		if i > 0 && i < len(labels)-2 && slices.Contains(endsOfHosts, label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !slices.Contains([]string{"local", "internal", "lan", "home", "corp", "localhost"}, last)
}

// endsOfHosts end the names of most hosts that people know.
var endsOfHosts = strings.Fields("com org net edu gov io dev app co ai de uk fr eu us ch at nl it es pl se no dk jp cn in br ca au")

// coded reports whether a word could be a token, a number of somebody, or something
// else that is not for reading.
func coded(word string) bool {
	digits := len(word) - len(strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1
		}
		return c
	}, word))
	return len(word) > 30 || digits > 8 || digits > 2 && len(word) >= 16
}

// cleanText cleans the path in s like path.Clean, but keeps what a pattern
// may look for: the scheme of a URL, and a slash at the end.
func cleanText(s string) string {
	scheme, rest := "", s
	if i := strings.Index(s, "://"); i > 0 && strings.Trim(strings.ToLower(s[:i]), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == "" {
		scheme, rest = s[:i+3], s[i+3:]
	}
	if rest == "" {
		return s
	}
	clean := path.Clean(rest)
	if strings.HasSuffix(rest, "/") && clean != "/" {
		clean += "/"
	}
	return scheme + clean
}
