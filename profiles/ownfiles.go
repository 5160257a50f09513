package profiles

import (
	"path"
	"strconv"
	"strings"
)

// ownFiles recognises arguments that name the bridge's own files (config,
// store, key, tokens) or anything below them if they are folders.
//
// It looks only at names: in every string and key at any depth, also inside longer
// strings (a command line, a URL, JSON in a string), whatever the case and the
// kind of slash, with `.`, `..`, double slashes and percent-encoding undone.
// Names may be absolute, start at the home folder (~/, $HOME/), or be relative
// with at least the folder's name. It cannot see through links, other encodings,
// or a bare file name in a working folder: a tool can do whatever its user can.
type ownFiles []string // cleaned: lower case, forward slashes

func newOwnFiles(files []string) ownFiles {
	var own ownFiles
	for _, f := range files {
		if f = strings.Trim(normal(f), " "); strings.Trim(f, "/.") != "" {
			own = appendNew(own, strings.TrimSuffix(path.Clean(f), "/"))
		}
	}
	return own
}

// named returns the first argument that names one of the bridge's files, as a
// dotted path such as "paths.0". The path ends at the first name whose value is
// hidden, as hides tells.
func (own ownFiles) named(args map[string]any, hides func(name string) bool) (string, bool) {
	if len(own) == 0 {
		return "", false
	}
	return own.find(args, hides)
}

func (own ownFiles) find(v any, hides func(name string) bool) (string, bool) {
	switch v := v.(type) {
	case string:
		return "", own.in(v)
	case []any:
		for i, element := range v {
			// The place is only spelled out once something is found.
			if sub, ok := own.find(element, hides); ok {
				return join(strconv.Itoa(i), sub), true
			}
		}
	case map[string]any:
		found, place := false, ""
		for key, element := range v {
			sub, ok := "", own.in(key)
			if !ok {
				sub, ok = own.find(element, hides)
			}
			if !ok {
				continue
			}
			if hides(key) {
				sub = ""
			}
			// Maps have no order, a decision's reasons do.
			if p := join(key, sub); !found || p < place {
				found, place = true, p
			}
		}
		return place, found
	}
	return "", false
}

// maxShownKey bounds a key in such a path, in bytes.
const maxShownKey = 100

func join(key, sub string) string {
	if len(key) > maxShownKey {
		key = strings.ToValidUTF8(key[:maxShownKey], "") + "…"
	}
	if sub == "" {
		return key
	}
	return key + "." + sub
}

// in reports whether text names one of the files.
func (own ownFiles) in(text string) bool {
	// A name without a slash (or something that could hide one) is too short to be
	// ours.
	if !strings.ContainsAny(text, `/\%`) {
		return false
	}
	for round := 0; round < 3; round++ {
		n := normal(text)
		if own.inNormal(n) || own.inNormal(collapse(n)) {
			return true
		}
		for _, token := range strings.FieldsFunc(n, breaks) {
			if own.relative(path.Clean(token)) || own.inNormal(path.Clean(token)) {
				return true
			}
		}
		decoded := percentDecode(text)
		if decoded == text {
			break
		}
		text = decoded
	}
	return false
}

// inNormal reports whether the text contains the name of one of the files, or of
// something below it, or the name with a suffix such as -wal or .bak.
func (own ownFiles) inNormal(text string) bool {
	for _, f := range own {
		for rest := text; ; {
			i := strings.Index(rest, f)
			if i < 0 {
				break
			}
			rest = rest[i+len(f):]
			if rest == "" || !wordByte(rest[0]) {
				return true
			}
		}
	}
	return false
}

// relative reports whether a single name, cleaned, is the tail of one of the
// files, with at least its folder, or lies below such a tail.
func (own ownFiles) relative(name string) bool {
	for _, home := range []string{"~/", "$home/", "${home}/", "%userprofile%/", "$env:userprofile/"} {
		name = strings.TrimPrefix(name, home)
	}
	for strings.HasPrefix(name, "../") {
		name = name[3:]
	}
	for i := strings.IndexByte(name, '/') + 1; i > 1; {
		end := len(name)
		if next := strings.IndexByte(name[i:], '/'); next >= 0 {
			end = i + next
		}
		for _, f := range own {
			if tail, ok := strings.CutSuffix(f, name[:end]); ok && strings.HasSuffix(tail, "/") {
				return true
			}
		}
		if i = end + 1; end == len(name) {
			break
		}
	}
	return false
}

func wordByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' || c == '_' || c >= 0x80 }

// breaks separates the words of a command line, a list or a query.
func breaks(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`=,;:|&<>()[]?#", r) }

func normal(text string) string {
	return strings.ToLower(strings.ReplaceAll(text, `\`, "/"))
}

// collapse undoes double slashes, "." and ".." all over a text, without
// asking where in it a path begins.
func collapse(text string) string {
	if !strings.Contains(text, "//") && !strings.Contains(text, "/.") {
		return text
	}
	parts := strings.Split(text, "/")
	out := parts[:1]
	for _, p := range parts[1:] {
		switch {
		case p == "" || p == ".":
		case p == ".." && len(out) > 1:
			out = out[:len(out)-1]
		case p == "..":
		default:
			out = append(out, p)
		}
	}
	return strings.Join(out, "/")
}

// percentDecode undoes %XX once and leaves everything else alone.
func percentDecode(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if hi, lo := unhex(text[i+1]), unhex(text[i+2]); hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
