package provenance

import (
	"context"
	"errors"
	"io/fs"
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
