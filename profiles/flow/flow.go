// Package flow finds what was read again in what is sent: the answers of earlier calls
// in the arguments of a later one. It decides nothing.
//
// What is found: at least [MinRun] characters in a row, whatever their case and the
// white space between them, as they are, or encoded once (inside JSON, URL, base64 and
// hexadecimal); the same cut into parts that are sent to one place one after the other; and
// short values that identify: mail addresses, numbers of accounts and cards by their
// checksums, hosts, UUIDs, and what has the shape of a token.
//
// What is not found: what was computed, encrypted, translated or put in other words, or
// encoded twice; parts with something between them; and what is no longer remembered.
// So a find is a reason to look closer, and the lack of one is no reason not to.
//
// # How
//
// What was read is folded (lower case, no white space) and cut into blocks of 12
// bytes, and an index has the place of each. What is sent is folded too, and each 12 bytes
// of it, wherever they begin, are looked up: two texts that have 23 bytes in common have a whole
// block in common. Nothing is believed for its hash: bytes are compared. So the cost of a
// search depends on what is sent, not on what was read. With the index, answers take about
// three times as much memory as their text, and up to eight times where they are many short
// strings.
package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// MinRun is the least number of folded characters in a row that is reported.
const MinRun = 24

// DefaultLimit is how much of the answers a Memory keeps unless told otherwise, in bytes.
const DefaultLimit = 4 << 20

// MaxLimit is the most that [Memory.Keep] takes.
const MaxLimit = 64 << 20

// A Memory is what one run has read, and what it has sent of late. Its zero value is
// empty; its methods may be called by any number of goroutines.
type Memory struct {
	mu      sync.Mutex
	limit   int
	answers []*answer // in the order they came
	size    int       // bytes of them
	lost    []int     // sources of which something was left out, each once
	index   index
	kept    int              // bytes of the texts in the answers
	values  int              // short values in them
	sent    map[string]*tail // by sink and parameter
	open    map[int][]string // the places of calls that are not sent yet
	// sentSize is what the tails take; forgot reports that some are forgotten.
	sentSize int
	forgot   bool
}

// An answer is what one call returned.
type answer struct {
	source int
	class  int
	kept   int // bytes of its texts
	values int
	size   int
	reply  []byte  // JSON, perhaps without its end; nil once it was read
	texts  []*text // the strings in it
}

// Keep raises how many bytes of answers are kept; what that costs in memory is said above. It
// never lowers it.
func (m *Memory) Keep(limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = max(m.limit, min(limit, MaxLimit))
}

// Read remembers an answer: JSON, such as a whole CallToolResult, which is copied. Source is the
// caller's own number for where it came from. It is cheap: the answer is parsed when
// [Memory.Prepare] or Find is next called.
func (m *Memory) Read(source int, reply []byte) { m.ReadAs(source, source, reply) }

// ReadAs is Read for a source of a class. Of the sources of one class that have the same short value
// one is found.
func (m *Memory) ReadAs(source, class int, reply []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := cmp.Or(m.limit, DefaultLimit)
	if most := limit / 4; len(reply) > most {
		reply = reply[:most]
		m.lose(source)
	}
	m.answers = append(m.answers, &answer{source: source, class: class, size: len(reply), reply: bytes.Clone(reply)})
	if m.size += len(reply); m.size <= limit {
		return
	}
	// The largest is dropped first, so that nobody can flush a key file out with pages; and
	// some more than must be, since the index has to be made anew.
	for m.size > limit/4*3 && len(m.answers) > 1 {
		largest := 0
		for i, a := range m.answers {
			if a.size > m.answers[largest].size {
				largest = i
			}
		}
		m.lose(m.answers[largest].source)
		m.size, m.kept, m.values = m.size-m.answers[largest].size, m.kept-m.answers[largest].kept, m.values-m.answers[largest].values
		m.answers = slices.Delete(m.answers, largest, largest+1)
	}
	m.index = index{}
	for _, a := range m.answers {
		for _, t := range a.texts {
			m.index.add(t)
		}
	}
}

func (m *Memory) lose(source int) {
	if !slices.Contains(m.lost, source) {
		m.lost = append(m.lost, source)
	}
}

// Lost returns the sources of which not everything is remembered.
func (m *Memory) Lost() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lost)
}

// Prepare reads the answers that came since, so that the next Find need not.
func (m *Memory) Prepare() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prepare()
}

func (m *Memory) prepare() {
	for i := len(m.answers) - 1; i >= 0 && m.answers[i].reply != nil; i-- {
		a := m.answers[i]
		joined := &text{source: a.source, class: a.class}
		keep := func(s string) {
			if m.kept+len(s) > keptPerLimit*cmp.Or(m.limit, DefaultLimit) {
				m.lose(a.source)
				return
			}
			m.kept, a.kept = m.kept+len(s), a.kept+len(s)
			t := joined
			if len(s) >= block && strings.IndexByte(s, '\n') >= 0 && len(a.texts) < maxTexts {
				t = &text{source: a.source, class: a.class}
				a.texts = append(a.texts, t)
			}
			t.append(s)
			m.keepValues(a, t, s)
		}
		eachString(a.reply, func(s string) {
			keep(s)
			if plain, ok := decodedWhole(s); ok {
				keep(plain)
			}
		}, maxNested)
		a.reply, a.texts = nil, append(a.texts, joined)
		for _, t := range a.texts {
			t.folded = slices.Clip(t.folded)
			m.index.add(t)
		}
	}
}

// keepValues keeps the short values in a string.
func (m *Memory) keepValues(a *answer, t *text, s string) {
	for _, v := range valuesIn(s) {
		if m.values >= cmp.Or(m.limit, DefaultLimit)/bytesPerValue {
			m.lose(a.source)
			return
		}
		m.values, a.values = m.values+1, a.values+1
		t.values = append(t.values, v)
	}
}

// Bounds on what an answer takes, which strings within strings and short values make larger than itself.
const (
	keptPerLimit  = 2       // bytes of folded texts, for each byte of the limit
	bytesPerValue = 64      // of the limit, for each value that may be kept
	maxTexts      = 1 << 14 // of an answer have numbers of lines
)

// Contains reports whether a text, folded, stands in an answer of a source.
func (m *Memory) Contains(source int, words string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prepare()
	looked := fold(words).folded
	for _, a := range m.answers {
		if a.source == source && len(looked) > 0 && slices.ContainsFunc(a.texts, func(t *text) bool { return bytes.Contains(t.folded, looked) }) {
			return true
		}
	}
	return false
}

// A text is one string that was read.
//
// Strings of one line are kept together, as a text that has each of them. A byte that no folded text has
// stands between them, so that nothing is found across two.
type text struct {
	source int
	class  int
	folded []byte
	lines  []int32 // where each line but the first begins in folded
	values []value // short ones
	first  uint32  // its first block in the index
}

// append adds a string. The numbers of lines are those of the only one.
func (t *text) append(s string) {
	v := fold(s)
	if len(t.folded) > 0 {
		t.lines, t.folded = nil, append(t.folded, between)
		t.folded = append(t.folded, v.folded...)
		return
	}
	t.folded = v.folded
	at, next := 0, strings.IndexByte(s, '\n')
	for i := 0; next >= 0; {
		for i < len(v.at) && int(v.at[i]) <= next {
			i++
		}
		t.lines = append(t.lines, int32(i))
		at = next + 1
		if next = strings.IndexByte(s[at:], '\n'); next >= 0 {
			next += at
		}
	}
}

// between stands between two strings of a text.
const between = 0

// line is the number of the line in which a byte of the folded text stands, from 1; 0 if
// there is only one.
func (t *text) line(at int) int {
	if len(t.lines) == 0 {
		return 0
	}
	i, _ := slices.BinarySearch(t.lines, int32(at)+1)
	return i + 1
}

// maxNested is how deep JSON that stands in a string of JSON is read.
const maxNested = 3

// minText is how long a string must be to be looked at, in bytes.
const minText = 6

// eachString calls f with the strings and long numbers of JSON, and with those of
// JSON that stands in them. A text that is cut off yields those before its end.
func eachString(reply []byte, f func(string), nested int) {
	d := json.NewDecoder(bytes.NewReader(reply))
	d.UseNumber()
	for {
		t, err := d.Token()
		var s string
		ok := false
		switch v := t.(type) {
		case string:
			s, ok = v, true
		case json.Number:
			s, ok = v.String(), len(v) >= minNumber
		}
		if err != nil {
			if s, ok = unfinished(reply[d.InputOffset():]); !ok {
				return
			}
		}
		if ok && len(s) >= minText {
			f(s)
			if first := strings.TrimLeft(s, " \t\r\n"); nested > 0 && first != "" && strings.IndexByte(`{["`, first[0]) >= 0 {
				eachString([]byte(first), f, nested-1)
			}
		}
		if err != nil {
			return
		}
	}
}

// unfinished reads the string in which a text breaks off.
func unfinished(rest []byte) (s string, ok bool) {
	rest = bytes.TrimLeft(rest, " \t\r\n,:")
	if len(rest) == 0 || rest[0] != '"' {
		return "", false
	}
	const longestEscape = len(`\ud83d\ude0`)
	for cut := range min(len(rest), longestEscape+1) {
		whole := append(rest[:len(rest)-cut:len(rest)-cut], '"')
		if json.Unmarshal(whole, &s) == nil {
			return s, true
		}
	}
	return "", false
}
