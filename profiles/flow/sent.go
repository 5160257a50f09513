package flow

import (
	"slices"
	"strings"
)

// Texts may be cut into parts that are sent to the same place one after the other, or at the same
// time: each is looked at together with those before it, whether or not they have arrived.

const (
	maxTail   = 2048     // bytes kept of what was sent to one place
	maxTails  = 16 << 20 // bytes of all of them, with their names; then all are forgotten, and Found.Partly says so
	maxRecent = 64       // parts of which it is known which call sends them
	perTail   = 64       // what a place costs beside its bytes
)

// A tail is the end of what was sent to one place.
type tail struct {
	sent   []byte // before the parts, by calls that are over
	recent []part // by the numbers of their calls: those made at the same time are decided in any order
}

type part struct {
	call int
	text []byte
}

// around is what stands before and behind the text of a call: what calls with smaller and larger numbers send. A
// call without a number stands behind all.
func (t *tail) around(call int) (before, behind []byte) {
	if t == nil {
		return nil, nil
	}
	before = t.sent
	for _, p := range t.recent {
		switch {
		case call == 0 || p.call < call:
			before = extended(before, string(p.text))
		case p.call > call && len(behind) < maxPart:
			behind = append(behind, p.text...)
		}
	}
	return before, behind[:min(len(behind), maxPart)]
}

// add adds a part, and makes one text of those that came long before.
func (t *tail) add(p part) {
	i, _ := slices.BinarySearchFunc(t.recent, p.call, func(o part, call int) int { return o.call - call })
	t.recent = slices.Insert(t.recent, i, p)
	size := 0
	for _, p := range t.recent {
		size += len(p.text)
	}
	for len(t.recent) > maxRecent || size-len(t.recent[0].text) >= maxTail {
		size -= len(t.recent[0].text)
		t.sent = extended(t.sent, string(t.recent[0].text))
		t.recent = slices.Delete(t.recent, 0, 1)
	}
}

// Take finds as Find does, and notes the arguments as what stands before those of later calls, until
// Sent or Drop says what became of the call. A call that is taken again has other arguments.
func (m *Memory) Take(call int, sink string, arguments any) Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.find(call, sink, arguments)
	m.drop(call, sink+"\x00")
	texts := map[string][]byte{}
	var places []string
	for _, sent := range Strings(arguments) {
		at := placeOf(sink, sent.Path)
		if texts[at] == nil {
			places = append(places, at)
		}
		texts[at] = extended(texts[at], sent.Text)
	}
	for _, at := range places {
		t := m.tail(at, len(texts[at]))
		t.add(part{call, texts[at]})
		if m.open == nil {
			m.open = map[int][]string{}
		}
		m.open[call] = append(m.open[call], at)
	}
	return found
}

// Sent notes that a call was sent.
func (m *Memory) Sent(call int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, call)
}

// Drop notes that a call is not sent.
func (m *Memory) Drop(call int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(call, "")
}

// drop forgets the open parts of a call at the places whose names begin so.
func (m *Memory) drop(call int, prefix string) {
	left := slices.DeleteFunc(m.open[call], func(at string) bool {
		t := m.sent[at]
		if !strings.HasPrefix(at, prefix) {
			return false
		}
		if t != nil {
			t.recent = slices.DeleteFunc(t.recent, func(p part) bool { return p.call == call })
		}
		return true
	})
	if len(left) == 0 {
		delete(m.open, call)
	} else {
		m.open[call] = left
	}
}

// Send notes what was sent by a call that is over.
func (m *Memory) Send(sink string, arguments any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sent := range Strings(arguments) {
		t := m.tail(placeOf(sink, sent.Path), len(sent.Text))
		t.sent = extended(t.sent, sent.Text)
	}
}

// tail returns that of a place where something is going to be added.
func (m *Memory) tail(at string, more int) *tail {
	costs := min(more, maxTail)
	if m.sent[at] == nil {
		costs += len(at) + perTail
	}
	if m.sentSize += costs; m.sentSize > maxTails {
		m.weigh()
	}
	if m.sentSize > maxTails {
		m.sent, m.open, m.sentSize, m.forgot = nil, nil, costs, true
	}
	t := m.sent[at]
	if t == nil {
		if m.sent == nil {
			m.sent = map[string]*tail{}
		}
		t = new(tail)
		m.sent[at] = t
	}
	return t
}

// weigh counts what the tails take: what was added may have pushed out as much.
func (m *Memory) weigh() {
	m.sentSize = 0
	for at, t := range m.sent {
		m.sentSize += len(at) + perTail + len(t.sent)
		for _, p := range t.recent {
			m.sentSize += len(p.text) + perTail
		}
	}
	if m.sentSize > maxTails/2 {
		m.sentSize = maxTails + 1 // weighing is not free: not with every call
	}
}

// placeOf is where parts of one text are sent: the elements of a list are one place.
func placeOf(sink, path string) string {
	var b strings.Builder
	b.WriteString(sink)
	b.WriteByte(0)
	for i := 0; i < len(path); i++ {
		if path[i] == '[' {
			if end := strings.IndexByte(path[i:], ']'); end > 0 && strings.Trim(path[i+1:i+end], "0123456789") == "" {
				i += end
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// extended returns the last of what was sent to a place.
func extended(tail []byte, text string) []byte {
	text = text[max(0, len(text)-maxTail):]
	return slices.Concat(tail[max(0, len(tail)+len(text)-maxTail):], []byte(text))
}
