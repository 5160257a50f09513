//go:build real

package pgstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgtest"
	"codemode-bridge/bridge/storetest"
)

func openDocuments(t testing.TB, o Options) *Documents {
	t.Helper()
	d, err := OpenDocuments(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func keep(t testing.TB, s documents.Store, name, body string) {
	t.Helper()
	if err := s.Change(t.Context(), name, func([]byte) ([]byte, error) { return []byte(body), nil }); err != nil {
		t.Fatal(err)
	}
}

func TestRealDocuments(t *testing.T) {
	storetest.Documents(t, func(t *testing.T) (documents.Store, func(*testing.T) documents.Store) {
		o := place()
		return openDocuments(t, o).Documents("kind"), func(t *testing.T) documents.Store { return openDocuments(t, o).Documents("kind") }
	})
}

// A document is of its kind and name: neither can be changed in the database, nor a text
// be read there.
func TestRealDocumentsBound(t *testing.T) {
	o := place()
	d := openDocuments(t, o)
	one, two := d.Documents("one"), d.Documents("two")
	keep(t, one, "x", "the first text")
	keep(t, two, "x", "the second text")
	keep(t, one, "y", "the third text")
	if got, err := two.Read(t.Context(), "x"); err != nil || string(got) != "the second text" {
		t.Errorf("of the other kind: %q, %v", got, err)
	}
	if names, err := two.Names(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("names of the other kind: %q, %v", names, err)
	}
	var dump string
	if err := raw(t, o).QueryRow(t.Context(), "SELECT string_agg(encode(body, 'escape'), ' ') FROM documents").Scan(&dump); err != nil || strings.Contains(dump, "text") {
		t.Errorf("in the database there is %q, %v", dump, err)
	}
	for what, edited := range map[string]string{
		"another name": "UPDATE documents SET body = (SELECT body FROM documents WHERE kind = 'one' AND name = 'y') WHERE kind = 'one' AND name = 'x'",
		"another kind": "UPDATE documents SET body = (SELECT body FROM documents WHERE kind = 'one' AND name = 'y') WHERE kind = 'two'",
		"no cipher":    "UPDATE documents SET body = 'x' WHERE kind = 'one' AND name = 'y'",
	} {
		keep(t, one, "y", "the third text")
		edit(t, o, edited)
		bad := 0
		for _, s := range []documents.Store{one, two} {
			for _, name := range []string{"x", "y"} {
				_, err := s.Read(t.Context(), name)
				if errors.Is(err, ledger.ErrDamaged) {
					bad++
					if err := s.Change(t.Context(), name, func([]byte) ([]byte, error) { t.Error("it was called"); return nil, nil }); !errors.Is(err, ledger.ErrDamaged) {
						t.Errorf("changing it: %v", err)
					}
					if err := documents.Discard(t.Context(), s, name); err != nil {
						t.Errorf("discarding it: %v", err)
					}
					if _, err := s.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("after it was discarded: %v", err)
					}
				} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		}
		if bad != 1 {
			t.Errorf("%s: %d documents count as damaged", what, bad)
		}
		edit(t, o, "DELETE FROM documents")
		keep(t, one, "x", "1")
		keep(t, two, "x", "2")
	}
	if _, err := d.Documents("no kind").Read(t.Context(), "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a wrong kind: %v", err)
	}
}

// A connection that is lost in the end of a change: what was kept counts as kept, once.
func TestRealDocumentsCut(t *testing.T) {
	p, through := proxied(t, place())
	s := openDocuments(t, through).Documents("kind")
	keep(t, s, "n", "1")
	var cuts atomic.Int64
	answers := func(got []byte) bool {
		if bytes.Contains(got, []byte("COMMIT\x00")) && cuts.Add(1) == 1 {
			go p.Cut()
			return false
		}
		return true
	}
	p.OnAnswer.Store(&answers)
	calls := 0
	err := s.Change(t.Context(), "n", func(old []byte) ([]byte, error) { calls++; return append(old, '2'), nil })
	if got, readErr := s.Read(t.Context(), "n"); err != nil || readErr != nil || string(got) != "12" || calls != 1 || cuts.Load() < 1 {
		t.Errorf("it is %q (%v) after %d calls and %d cuts: %v", got, readErr, calls, cuts.Load(), err)
	}
	// A change that never arrives is an error, and the next one works.
	var swallowed atomic.Bool
	request := func(sent []byte) bool {
		if bytes.Contains(bytes.ToLower(sent), []byte("commit")) && swallowed.CompareAndSwap(false, true) {
			go p.Cut()
			return false
		}
		return true
	}
	p.OnRequest.Store(&request)
	err = s.Change(t.Context(), "n", func(old []byte) ([]byte, error) { return append(old, '3'), nil })
	if !swallowed.Load() || !errors.Is(err, ledger.ErrUnavailable) || strings.Contains(fmt.Sprint(err), pgtest.Password) {
		t.Errorf("what never arrived: %v", err)
	}
	until(t, func() bool {
		got, err := s.Read(t.Context(), "n")
		return err == nil && string(got) == "12"
	})
}

// Changes are told also where notifications are lost, and after the connection that
// listens was lost.
func TestRealDocumentsWatched(t *testing.T) {
	o := place()
	a, b := openDocuments(t, o).Documents("kind"), openDocuments(t, o).Documents("kind")
	told := make(chan struct{}, 100)
	go a.Watch(t.Context(), func() { told <- struct{}{} })
	hears := func(body string) {
		t.Helper()
		keep(t, b, "d", body)
		until(t, func() bool {
			select {
			case <-told:
			default:
			}
			got, err := a.Read(t.Context(), "d")
			return err == nil && string(got) == body
		})
	}
	hears("1")
	edit(t, o, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'codemode-bridge' AND query LIKE 'LISTEN%'")
	for len(told) > 0 {
		<-told
	}
	keep(t, b, "d", "2")
	select {
	case <-told:
	case <-time.After(3 * time.Minute):
		t.Error("a change is not told after the connection was lost")
	}
}

// A store that an older release made gets the table, and keeps what it has.
func TestRealDocumentsMigrated(t *testing.T) {
	o := place()
	now := migrations
	migrations = migrations[:slices.Index(migrations, schemaDocuments)]
	version = len(migrations)
	restore := func() { migrations, version = now, len(now) }
	defer restore()
	put(t, begin(t, o), 3)
	if err := Writable(t.Context(), o); err != nil {
		t.Error(err)
	}
	restore()
	s := openDocuments(t, o).Documents("kind")
	keep(t, s, "d", "text")
	whole(t, begin(t, o))
	if err := Writable(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// A copy of a store in another schema has its documents, too.
func TestRealDocumentsCarried(t *testing.T) {
	from, to := place(), place()
	put(t, begin(t, from), 1)
	keep(t, openDocuments(t, from).Documents("kind"), "d", "text")
	source, err := Carry(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if err := Receive(t.Context(), to, source); err != nil {
		t.Fatal(err)
	}
	if got, err := openDocuments(t, to).Documents("kind").Read(t.Context(), "d"); err != nil || string(got) != "text" {
		t.Errorf("in the copy it is %q, %v", got, err)
	}
}
