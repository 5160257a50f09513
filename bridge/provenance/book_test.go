package provenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"
)

// A shelf in memory, which may break.
type shelf struct {
	all    map[string][]byte
	broken error
}

func (s *shelf) Read(_ context.Context, name string) ([]byte, error) {
	if text, ok := s.all[name]; ok || s.broken != nil {
		return text, s.broken
	}
	return nil, fs.ErrNotExist
}

func (s *shelf) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	if s.broken != nil {
		return s.broken
	}
	text, err := change(s.all[name])
	if err == nil {
		s.all[name] = text
	}
	return err
}

var (
	someNotes = Mark{From: "notes__read", Labels: []string{"private"}}
	somePage  = Mark{From: "web__get", Labels: []string{"untrusted"}}
)

// What a principal has read survives the bridge, holds at other bridges, and lasts eight hours; what a session has
// read lasts as long as it does, and is nobody else's.
func TestBookOnAShelf(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	s := &shelf{all: map[string][]byte{}}
	one, other := NewBook(s), NewBook(s)
	ann, session := Key("", true, "ann", ""), Key("s1", false, "ann", "")
	one.Add(ann, at, someNotes)
	one.Add(session, at, somePage)
	if got := other.Of(ann, at); len(got) != 1 || got[0].From != "notes__read" {
		t.Errorf("at another bridge: %+v", got)
	}
	other.Add(ann, at, somePage)
	if got := one.Of(ann, at.Add(2*time.Second)); len(got) != 2 {
		t.Errorf("what the other has read: %+v", got)
	}
	if len(s.all) != 1 || len(other.Of(session, at)) != 0 || len(other.Of(Key("", true, "bob", ""), at)) != 0 {
		t.Errorf("the session's are shared: %d documents", len(s.all))
	}
	if got := NewBook(s).Of(ann, at.Add(Lasts-time.Minute)); len(got) != 2 {
		t.Errorf("after a restart: %+v", got)
	}
	if got := NewBook(s).Of(ann, at.Add(Lasts+time.Minute)); len(got) != 0 {
		t.Errorf("eight hours later: %+v", got)
	}
}

// Where the shelf cannot be read, or is damaged, anything may have been read.
func TestBookWithoutItsShelf(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	ann := Key("", true, "ann", "")
	s := &shelf{all: map[string][]byte{}, broken: errors.New("no connection")}
	b := NewBook(s)
	b.Add(ann, at, someNotes)
	if got := b.Of(ann, at); len(got) != 2 || !got[1].Unknown {
		t.Errorf("it cannot be read: %+v", got)
	}
	s.broken = nil
	b.Add(ann, at.Add(time.Second), someNotes)
	if got := NewBook(s).Of(ann, at.Add(time.Second)); len(got) != 1 || got[0].Unknown {
		t.Errorf("it was written later: %+v", got)
	}
	s.all[nameOf(ann)] = []byte("{")
	if got := NewBook(s).Of(ann, at); len(got) != 1 || !got[0].Unknown {
		t.Errorf("it is damaged: %+v", got)
	}
}

func TestUnion(t *testing.T) {
	if labels, unknown := Union([]Mark{someNotes, somePage, someNotes}); len(labels) != 2 || unknown {
		t.Errorf("%v, %v", labels, unknown)
	}
	if _, unknown := Union(nil); !unknown {
		t.Error("nobody knows what nothing is labelled")
	}
}

// A mark that could not be put on the shelf is put there with what is read next, even if the shelf was
// read meanwhile.
func TestBookKeepsWhatItCouldNot(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	ann := Key("", true, "ann", "")
	s := &shelf{all: map[string][]byte{}}
	b := NewBook(s)
	b.Add(ann, at, someNotes)
	s.broken = errors.New("no connection")
	b.Add(ann, at.Add(time.Second), somePage)
	s.broken = nil
	if got := b.Of(ann, at.Add(3*time.Second)); len(got) != 2 {
		t.Errorf("it was forgotten here: %+v", got)
	}
	b.Add(ann, at.Add(4*time.Second), somePage)
	if got := NewBook(s).Of(ann, at.Add(4*time.Second)); len(got) != 2 {
		t.Errorf("another bridge does not know it: %+v", got)
	}
}

// Many calls of one principal read and note at the same time.
func TestBookByManyCalls(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	ann := Key("", true, "ann", "")
	b := NewBook(nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			b.Add(ann, at.Add(time.Duration(i)), someNotes)
			b.Of(ann, at)
		})
	}
	all.Wait()
	if got := b.Of(ann, at); len(got) != 1 {
		t.Errorf("it has %+v", got)
	}
}

// What a person has forgotten at one bridge is forgotten at all: no other puts it back. What is read later counts at all,
// whatever the clocks of the bridges say, and what is read again is new.
func TestBookForgets(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	s := &shelf{all: map[string][]byte{}}
	one, other := NewBook(s), NewBook(s)
	ann, handles := Key("", true, "ann", ""), HandlesKey("ann")
	for _, b := range []*Book{one, other} {
		b.Add(ann, at, someNotes)
		b.Add(handles, at, someNotes)
	}
	forgotten := func(name string, now time.Time) {
		t.Helper()
		for i, b := range []*Book{one, other, NewBook(s)} {
			if got := b.Of(ann, now); len(got) != 0 {
				t.Errorf("%s: bridge %d has %+v", name, i, got)
			}
		}
	}
	known := func(name string, now time.Time, want ...string) {
		t.Helper()
		for i, b := range []*Book{one, other, NewBook(s)} {
			var got []string
			for _, m := range b.Of(ann, now) {
				got = append(got, m.From)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: bridge %d has %q, want %q", name, i, got, want)
			}
		}
	}
	one.Clear(ann, at.Add(time.Second), at.Add(2*time.Second))
	forgotten("at once", at.Add(3*time.Second))
	other.Add(handles, at.Add(4*time.Second), somePage)
	one.Clear(ann, at, at.Add(4*time.Second))
	forgotten("again, as a run that goes on does", at.Add(5*time.Second))
	bob := Key("", true, "bob", "")
	other.Add(bob, at.Add(5*time.Second), someNotes)
	one.Clear(bob, at.Add(5*time.Second), at.Add(5*time.Second))
	other.Add(bob, at.Add(5*time.Second+lookAgain/2), somePage) // before it knows
	if got := NewBook(s).Of(bob, at.Add(6*time.Second)); len(got) != 1 || got[0].From != "web__get" {
		t.Errorf("another bridge puts back %+v", got)
	}
	if got := one.Of(handles, at.Add(6*time.Second)); len(got) != 2 {
		t.Errorf("what a handle stands for: %+v", got)
	}
	other.Add(ann, at.Add(-time.Hour), someNotes) // by a clock that is late
	known("it is read again", at.Add(8*time.Second), "notes__read")
	one.Add(ann, at.Add(9*time.Second), somePage)
	other.Clear(ann, at.Add(8*time.Second), at.Add(10*time.Second))
	known("what was read after what is forgotten", at.Add(12*time.Second), "web__get")
}

// What a bridge reads again before it knows that it was forgotten elsewhere is known everywhere.
func TestBookReadsWhatWasForgotten(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	s := &shelf{all: map[string][]byte{}}
	one, other := NewBook(s), NewBook(s)
	ann := Key("", true, "ann", "")
	other.Add(ann, at, someNotes)
	one.Clear(ann, at.Add(100*time.Millisecond), at.Add(100*time.Millisecond))
	other.Add(ann, at.Add(500*time.Millisecond), someNotes) // which it has, as far as it knows
	if got := other.Of(ann, at.Add(2*time.Second)); len(got) == 0 {
		t.Error("there it is forgotten")
	}
	if got := one.Of(ann, at.Add(3*time.Second)); len(got) == 0 {
		t.Error("the other does not know it")
	}
}

// A page that an older release has written, and one that cannot be read, say nothing of when it was read.
func TestBookForgetsWhatIsOlder(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	ann := Key("", true, "ann", "")
	for text, want := range map[string]int{
		`{"last":"2026-05-01T09:00:00Z","marks":[{"from":"notes__read","labels":["private"]}]}`: 0,
		`{"last":"2026-05-01T09:00:05Z","marks":[{"from":"notes__read","labels":["private"]}]}`: 1,
		`{`: 1,
	} {
		s := &shelf{all: map[string][]byte{nameOf(ann): []byte(text)}}
		b := NewBook(s)
		b.Clear(ann, at.Add(time.Second), at.Add(6*time.Second))
		if got := NewBook(s).Of(ann, at.Add(7*time.Second)); len(got) != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// Marks that are alike stand for one another: if one of them was read later, it stays.
func TestMarksForget(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	var m Marks
	for i := range maxAlike + 1 {
		m.Read(at.Add(time.Duration(i)*time.Second), Mark{From: fmt.Sprint("notes__read", i), Labels: someNotes.Labels})
	}
	m.Read(at.Add(time.Minute), Mark{From: "notes__read1", Labels: someNotes.Labels})
	if !m.Clear(at.Add(3*time.Second)) || m.Clear(at.Add(2*time.Second)) {
		t.Error("it is news, and then it is not")
	}
	if got := m.All(); len(got) != 2 || got[0].From != "notes__read0" || got[1].From != "notes__read1" {
		t.Errorf("%+v", got)
	}
	m.Add(Mark{From: "web__get", Labels: somePage.Labels, At: at})
	if now := m.Read(at, somePage); !now.After(m.Cleared()) || len(m.All()) != 3 {
		t.Errorf("read at %v: %+v", now, m.All())
	}
}
