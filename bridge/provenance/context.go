package provenance

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A Mark says that something was read: by a run, in a session, or by a principal.
type Mark struct {
	From    string   `json:"from"` // the tool, in display form
	Labels  []string `json:"labels,omitempty"`
	Unknown bool     `json:"unknown,omitempty"` // nobody has said which labels it has
	// At is when it was read, the last time; zero if that is not known.
	At time.Time `json:"at,omitzero"`
}

// same reports whether two marks say the same to rules.
func (m Mark) same(o Mark) bool { return m.Unknown == o.Unknown && slices.Equal(m.Labels, o.Labels) }

// Marks are what was read. Of the sources with the same labels a few are named. The zero value is
// empty; its methods may be called by any number of goroutines.
type Marks struct {
	mu      sync.Mutex
	all     []Mark
	cleared time.Time // what was read up to then is forgotten
}

// maxAlike bounds how many sources with the same labels are kept.
const maxAlike = 4

// Add adds marks, unless they say nothing or what was read then is forgotten.
func (m *Marks) Add(all ...Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mark := range all {
		m.addLocked(mark)
	}
}

// Read adds marks of what is read now, which is after whatever was forgotten, unless they say when it was. It returns
// when now is.
func (m *Marks) Read(now time.Time, all ...Mark) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !now.After(m.cleared) { // another clock has said so, or this one stands
		now = m.cleared.Add(1)
	}
	for _, mark := range all {
		if mark.At.IsZero() {
			mark.At = now
		}
		m.addLocked(mark)
	}
	return now
}

func (m *Marks) addLocked(mark Mark) {
	if m.forgottenLocked(mark) || len(mark.Labels) == 0 && !mark.Unknown {
		return
	}
	alike, at := 0, -1
	for i, had := range m.all {
		if !had.same(mark) {
			continue
		}
		if alike++; at < 0 || had.From == mark.From {
			at = i
		}
	}
	if alike < maxAlike && (at < 0 || m.all[at].From != mark.From) {
		m.all = append(m.all, mark)
	} else if mark.At.After(m.all[at].At) {
		m.all[at].At = mark.At // or what was read last would be forgotten with it
	}
}

func (m *Marks) forgottenLocked(mark Mark) bool {
	return !m.cleared.IsZero() && !mark.At.After(m.cleared)
}

// Clear forgets what was read up to then, also if it is added later. It reports whether that is
// news.
func (m *Marks) Clear(upTo time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !upTo.After(m.cleared) {
		return false
	}
	m.cleared = upTo
	m.all = slices.DeleteFunc(m.all, m.forgottenLocked)
	return true
}

// Cleared is up to when all is forgotten; zero for nothing.
func (m *Marks) Cleared() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cleared
}

// All returns the marks.
func (m *Marks) All() []Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// ContextFacts are marks as policy sees them, each once.
func ContextFacts(marks ...Mark) (all []profiles.FlowFact) {
	var had Marks
	had.Add(marks...)
	for _, m := range had.All() {
		all = append(all, profiles.FlowFact{Labels: profiles.Labels{Has: m.Labels, Unknown: m.Unknown}, Says: m.From + " was read"})
	}
	return all
}

// ContentFacts are what was found of sources, as policy sees it. Backs reports whether what was read
// from a source may go to where the call goes: it came from there.
func (f Found) ContentFacts(backs func(Source) bool) (all []profiles.FlowFact) {
	for _, r := range slices.Concat(f.Runs, f.Values, f.Also) {
		if !backs(r.Source) {
			all = append(all, profiles.FlowFact{Labels: r.Source.flow(), Says: r.Words()})
		}
	}
	for _, s := range f.Lost {
		all = append(all, profiles.FlowFact{Labels: s.flow(), Undecided: true, Says: "not all is remembered that was read from " + s.from()})
	}
	if f.Partly && len(f.Lost) == 0 {
		all = append(all, profiles.FlowFact{Labels: profiles.Labels{Unknown: true}, Undecided: true, Says: "the arguments were too much to be compared with all that was read"})
	}
	return all
}

func (s Source) flow() profiles.Labels { return profiles.Labels{Has: s.Labels, Unknown: s.Unlabelled} }

// Words says what was found, without quoting it: "312 characters of notes__read hr/salaries.md, line 4".
func (r Run) Words() string {
	var b strings.Builder
	if r.Value != "" {
		b.WriteString("a " + r.Value + " of " + r.From)
	} else {
		b.WriteString(canon.Thousands(r.Characters) + " characters of " + r.From)
	}
	if r.Line > 0 {
		b.WriteString(", line " + strconv.Itoa(r.Line))
	}
	if r.How != "" {
		b.WriteString(", in " + r.How)
	}
	if r.Parts {
		b.WriteString(", in parts")
	}
	return b.String()
}
