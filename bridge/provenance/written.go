package provenance

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// MaxWritten is how many calls of a run count as written that could tell somebody something
// by which of a script's literals they send, and in which order.
const MaxWritten = 10

// A Sending is a call that may pass on what a script has read.
type Sending struct {
	Call   int // its number in the run; 0 if it is not made
	Server string
	Args   canon.Args
	Tells  bool // somebody outside, after something private was read
	Leaves bool // something at the server after that, which a later call may send on
}

// Written reports whether the arguments of a call stand in a script as one literal. Which one is sent is
// the script's choice, so of the calls that tell somebody of it the first few count; none does at a server at which
// a call has left what stands nowhere.
func (m *Memory) Written(script string, s Sending) bool {
	is := literal(script, s.Args.Value())
	m.mu.Lock()
	defer m.mu.Unlock()
	if !is && s.Leaves && s.Call != 0 {
		if m.left == nil {
			m.left = map[string]bool{}
		}
		m.left[s.Server] = true
	}
	if !is || s.Tells && m.left[s.Server] {
		return false
	}
	call, tells := s.Call, s.Tells
	if !tells || m.written[call] {
		return true
	}
	if len(m.written) >= MaxWritten {
		return false
	}
	if m.written == nil {
		m.written = map[int]bool{}
	}
	if call != 0 { // it is made
		m.written[call] = true
	}
	return true
}

// literal reports whether an object stands in a script as a literal, from its brace to its end. Nothing is parsed
// but what may be that object: each step has a value that must come next.
func literal(script string, object map[string]any) bool {
	if len(object) == 0 {
		return true
	}
	l := &literals{script: script, left: maxLooks}
	for at := 0; l.left > 0; at++ {
		brace := strings.IndexByte(script[at:], '{')
		if brace < 0 {
			return false
		}
		at += brace
		if l.at = at; l.is(object) {
			return true
		}
	}
	return false
}

const (
	maxLooks = 1 << 16 // values that are looked for in a script; one with more braces is made to keep us busy
	maxName  = 256     // bytes of a name
)

// literals reads what stands in a script from some place on.
type literals struct {
	script string
	at     int
	left   int // values that may still be looked for
}

func (l *literals) blank() {
	for l.at < len(l.script) && strings.IndexByte(" \t\r\n", l.script[l.at]) >= 0 {
		l.at++
	}
}

// sign takes a sign, with blanks before it, if it comes next.
func (l *literals) sign(c byte) bool {
	l.blank()
	if l.at < len(l.script) && l.script[l.at] == c {
		l.at++
		return true
	}
	return false
}

// is takes a value if that is what comes next.
func (l *literals) is(v any) bool {
	if l.left--; l.left < 0 {
		return false
	}
	l.blank()
	switch v := v.(type) {
	case string:
		text, ok := l.text(len(v))
		return ok && text == v
	case []any:
		return l.list(v)
	case map[string]any:
		return l.object(v)
	case json.Number:
		return l.word() == v.String()
	case bool:
		return l.word() == strconv.FormatBool(v)
	case nil:
		return l.word() == "null"
	}
	return false
}

func (l *literals) list(all []any) bool {
	if !l.sign('[') {
		return false
	}
	for i, v := range all {
		if i > 0 && !l.sign(',') || !l.is(v) {
			return false
		}
	}
	l.sign(',')
	return l.sign(']')
}

func (l *literals) object(all map[string]any) bool {
	if !l.sign('{') {
		return false
	}
	var names []string
	for len(names) < len(all) {
		l.blank()
		name, ok := l.text(maxName)
		if !ok {
			name = l.word()
		}
		v, has := all[name]
		if !has || !l.sign(':') || !l.is(v) {
			return false
		}
		if names = append(names, name); len(names) < len(all) && !l.sign(',') {
			return false
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) < len(all) {
		return false // one came twice
	}
	l.sign(',')
	return l.sign('}')
}

// word takes a number, a name or the like.
func (l *literals) word() string {
	from := l.at
	for l.at < len(l.script) {
		c := l.script[l.at]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("_$.+-", c) < 0 {
			break
		}
		l.at++
	}
	return l.script[from:l.at]
}

// text takes a text in quotes that is at most so long, in bytes.
func (l *literals) text(most int) (string, bool) {
	if l.at == len(l.script) || strings.IndexByte("\"'`", l.script[l.at]) < 0 {
		return "", false
	}
	quote := l.script[l.at]
	l.at++
	var b strings.Builder
	for l.at < len(l.script) && b.Len() <= most {
		c := l.script[l.at]
		switch {
		case c == quote:
			l.at++
			return b.String(), true
		case c == '\\':
			r, ok := l.escape()
			if !ok {
				return "", false
			}
			b.WriteRune(r)
			continue
		case quote == '`' && strings.HasPrefix(l.script[l.at:], "${"), // it is computed
			quote == '`' && c == '\r', quote != '`' && c == '\n':
			return "", false
		}
		b.WriteByte(c)
		l.at++
	}
	return "", false
}

// escape takes an escape of a text.
func (l *literals) escape() (rune, bool) {
	rest := l.script[l.at+1:]
	if rest == "" {
		return 0, false
	}
	if i := strings.IndexByte("nrtbfv", rest[0]); i >= 0 {
		l.at += 2
		return rune("\n\r\t\b\f\v"[i]), true
	}
	switch c := rest[0]; {
	case c == 'u' || c == 'x':
		r, ok := l.code()
		if ok && utf16.IsSurrogate(r) {
			low, second := rune(0), strings.HasPrefix(l.script[l.at:], `\u`)
			if second {
				low, second = l.code()
			}
			r = utf16.DecodeRune(r, low)
			ok = second && r != utf8.RuneError
		}
		return r, ok
	case strings.IndexByte("\"'`\\/$", c) >= 0:
		l.at += 2
		return rune(c), true
	}
	return 0, false // nobody writes it otherwise than to hide something
}

// code takes the code of a character, with as many digits as its letter wants.
func (l *literals) code() (rune, bool) {
	digits := 4
	if l.script[l.at+1] == 'x' {
		digits = 2
	}
	from := l.at + 2
	if from+digits > len(l.script) {
		return 0, false
	}
	n, err := strconv.ParseUint(l.script[from:from+digits], 16, 32)
	l.at = from + digits
	return rune(n), err == nil
}
