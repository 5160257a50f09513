package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
)

// Lasts is how long a principal's marks last.
const Lasts = 8 * time.Hour

// A Shelf keeps small documents by name, for all bridges with the same store: see documents.Store.
type Shelf interface {
	Read(ctx context.Context, name string) ([]byte, error)
	Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// A Book keeps the marks of sessions, and of principals that have none. Those of principals are on the shelf,
// too, so that they survive the bridge and hold at others. What cannot be read there may be anything. Its methods
// may be called by any number of goroutines.
type Book struct {
	shelf Shelf // nil: everything is in memory

	mu  sync.Mutex
	all map[string]*page
}

// NewBook makes a book whose marks of principals are also on a shelf; nil is none.
func NewBook(shelf Shelf) *Book { return &Book{shelf: shelf, all: map[string]*page{}} }

type page struct {
	marks Marks
	last  time.Time // when something was read
	// kept is when the shelf was last written, zero if that failed; it is written again for each
	// mark that is new. Looked is when it was read.
	kept, looked time.Time
	wrong        error // why the shelf could not be read or written the last time
}

// The document of a page. Cleared stays after what it clears, since other bridges may still have that.
type kept struct {
	Last    time.Time `json:"last"` // when the page was changed
	Marks   []Mark    `json:"marks"`
	Cleared time.Time `json:"cleared,omitzero"` // what was read up to then is forgotten
}

const (
	sessionKey = "session " // begins the keys of sessions, whose marks last as long as they do
	keepAgain  = time.Minute
	lookAgain  = time.Second
	patience   = 2 * time.Second
)

// Key says under whose name a run's marks are kept: its session's; that of the principal
// where each request is a session of its own; and without one, that of the endpoint.
func Key(session string, brief bool, principal, endpoint string) string {
	switch {
	case !brief:
		return sessionKey + session
	case principal != "":
		return "principal " + principal
	}
	return "endpoint " + endpoint
}

// HandlesKey is under which what a principal has read in any session is kept: what a handle stands for, which any
// of them may read, is from there. It is empty where each session has handles of its own.
func HandlesKey(principal string) string {
	if principal == "" {
		return ""
	}
	return "handles of " + principal
}

// nameOf is the name of the document of a key.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func (b *Book) onShelf(key string) bool { return b.shelf != nil && !strings.HasPrefix(key, sessionKey) }

// page returns the one of a key, which may be shared by several.
func (b *Book) page(key string, now time.Time) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, p := range b.all {
		if p.over(other, now) {
			delete(b.all, other)
		}
	}
	p := b.all[key]
	if p == nil {
		p = &page{last: now}
		b.all[key] = p
	}
	return p
}

func (p *page) over(key string, now time.Time) bool {
	return !strings.HasPrefix(key, sessionKey) && now.Sub(p.last) > Lasts
}

// Of returns what was read under a key.
func (b *Book) Of(key string, now time.Time) []Mark {
	b.mu.Lock()
	p := b.all[key]
	fresh := p != nil && !p.over(key, now) && p.wrong == nil && now.Sub(p.looked) < lookAgain
	gone := p == nil || p.over(key, now)
	b.mu.Unlock()
	if !b.onShelf(key) {
		if gone {
			return nil
		}
		return p.marks.All()
	}
	p = b.page(key, now)
	if !fresh {
		b.look(p, key, now)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := p.marks.All()
	if p.wrong != nil {
		all = append(all, Mark{From: "what nobody can tell: " + canon.Escape(p.wrong.Error()), Unknown: true})
	}
	return all
}

// look takes over what is on the shelf: another bridge's marks, and that it has cleared the page. What was read here since
// then is put there, in case it had been there before.
func (b *Book) look(p *page, key string, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, err := b.shelf.Read(ctx, nameOf(key))
	has, err := read(text, err, now)
	b.mu.Lock()
	p.looked, p.wrong = now, err
	since := p.marks.Clear(has.Cleared) && len(p.marks.All()) > 0
	if has.Last.After(p.last) || len(p.marks.All()) == 0 && len(has.Marks) > 0 {
		p.last = has.Last
	}
	p.marks.Add(has.Marks...)
	b.mu.Unlock()
	if since {
		b.keep(p, key, now)
	}
}

// read reads a document; one that is over says nothing.
func read(text []byte, err error, now time.Time) (has kept, _ error) {
	if errors.Is(err, fs.ErrNotExist) || err == nil && text == nil {
		return kept{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	if err != nil || now.Sub(has.Last) > Lasts {
		return kept{}, err
	}
	for i := range has.Marks {
		if has.Marks[i].At.IsZero() { // an older release has written it
			has.Marks[i].At = has.Last
		}
	}
	return has, nil
}

// Add notes that something was read: now, unless the marks say when.
func (b *Book) Add(key string, now time.Time, marks ...Mark) {
	if key == "" {
		return
	}
	p := b.page(key, now)
	b.mu.Lock()
	look := b.onShelf(key) && p.wrong == nil && now.Sub(p.looked) >= lookAgain
	b.mu.Unlock()
	if look { // another bridge may have cleared it: this was read later, whatever the clocks say
		b.look(p, key, now)
	}
	b.mu.Lock()
	before := len(p.marks.All())
	p.marks.Read(now, marks...)
	p.last = now
	keep := b.onShelf(key) && len(p.marks.All()) > 0 && (len(p.marks.All()) > before || p.wrong != nil || now.Sub(p.kept) >= keepAgain)
	b.mu.Unlock()
	if keep {
		b.keep(p, key, now)
	}
}

// Clear forgets what was read under a key up to a time, at all bridges that share the shelf. What cannot be written there
// holds at this one alone.
func (b *Book) Clear(key string, upTo, now time.Time) {
	p := b.page(key, now)
	if p.marks.Clear(upTo) && b.onShelf(key) {
		b.keep(p, key, now)
	}
}

// keep puts a page on the shelf, with what others have put there.
func (b *Book) keep(p *page, key string, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := b.shelf.Change(ctx, nameOf(key), func(old []byte) ([]byte, error) {
		has, err := read(old, nil, now)
		if err != nil {
			has = kept{Marks: []Mark{{From: "what nobody can tell", Unknown: true, At: now}}} // it is damaged
		}
		var all Marks
		all.Clear(p.marks.Cleared())
		all.Clear(has.Cleared)
		all.Add(has.Marks...)
		all.Add(p.marks.All()...)
		if has.Last.Before(now) {
			has.Last = now
		}
		return json.Marshal(kept{Last: has.Last, Marks: all.All(), Cleared: all.Cleared()})
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.wrong, p.kept = err, now; err != nil {
		p.kept = time.Time{} // with what is read next, it is tried again
	}
}

// Forget forgets a session.
func (b *Book) Forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, sessionKey+session)
}

// Union are the labels of marks together; those of nothing are not known.
func Union(marks []Mark) (labels []string, unknown bool) {
	unknown = len(marks) == 0
	for _, m := range marks {
		unknown = unknown || m.Unknown
		for _, label := range m.Labels {
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	slices.Sort(labels)
	return labels, unknown
}
