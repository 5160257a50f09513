package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/documents"
)

// Documents is the suite that every documents.Store must pass. open returns a new,
// empty store, and a function that returns another view of it, as a second process
// would have it.
func Documents(t *testing.T, open func(t *testing.T) (store documents.Store, again func(t *testing.T) documents.Store)) {
	for name, test := range map[string]func(t *testing.T, a, b documents.Store){
		"replaced and removed": documentReplaced, "a refused change changes nothing": documentRefused, "nothing is lost": documentsCounted,
		"names": documentNames, "length": documentLength, "who does not wait any more": documentCancelled, "watched": documentWatched,
		"a copy is given": documentCopied, "discarded": documentDiscarded,
	} {
		t.Run(name, func(t *testing.T) {
			store, again := open(t)
			test(t, store, again(t))
		})
	}
}

// replace makes body the document; nil removes it.
func replace(t *testing.T, s documents.Store, name string, body []byte) (old []byte) {
	t.Helper()
	err := s.Change(t.Context(), name, func(was []byte) ([]byte, error) {
		old = was
		return body, nil
	})
	must(t, err)
	return old
}

func reads(t *testing.T, s documents.Store, name, want string) {
	t.Helper()
	if got, err := s.Read(t.Context(), name); err != nil || string(got) != want || got == nil {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

func lacksDocument(t *testing.T, s documents.Store, name string) {
	t.Helper()
	if got, err := s.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is %q, %v; want none", name, got, err)
	}
}

func named(t *testing.T, s documents.Store, want ...string) {
	t.Helper()
	if got, err := s.Names(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the names are %q, %v; want %q", got, err, want)
	}
}

func documentReplaced(t *testing.T, a, b documents.Store) {
	const odd = "\x00\xff<binary>\r\n"
	lacksDocument(t, a, "one.json")
	named(t, a)
	if old := replace(t, a, "one.json", []byte("1")); old != nil {
		t.Errorf("before the first change there was %q", old)
	}
	replace(t, b, "another", []byte(odd))
	reads(t, b, "one.json", "1")
	reads(t, a, "another", odd)
	if old := replace(t, b, "one.json", []byte{}); string(old) != "1" {
		t.Errorf("the change was given %q", old)
	}
	reads(t, a, "one.json", "") // an empty document is one
	if old := replace(t, a, "one.json", []byte{}); old == nil {
		t.Error("an empty document counts as none")
	}
	named(t, a, "another", "one.json")
	replace(t, a, "one.json", nil)
	lacksDocument(t, b, "one.json")
	named(t, b, "another")
	replace(t, b, "one.json", nil) // there is none
	lacksDocument(t, a, "one.json")
	reads(t, a, "another", odd)
}

func documentRefused(t *testing.T, a, b documents.Store) {
	replace(t, a, "d", []byte("before"))
	no := errors.New("no")
	for _, s := range []documents.Store{a, b} {
		for _, name := range []string{"d", "e"} {
			if err := s.Change(t.Context(), name, func([]byte) ([]byte, error) { return []byte("after"), no }); !errors.Is(err, no) {
				t.Errorf("a refused change of %s: %v", name, err)
			}
		}
	}
	reads(t, b, "d", "before")
	lacksDocument(t, b, "e")
	func() {
		defer func() { _ = recover() }()
		_ = a.Change(t.Context(), "d", func([]byte) ([]byte, error) { panic("in a change") })
	}()
	replace(t, b, "d", []byte("after")) // the lock is free
	reads(t, a, "d", "after")
}

// documentsCounted: each change sees the one before it, whoever made it.
func documentsCounted(t *testing.T, a, b documents.Store) {
	const writers, each = 6, 10
	var wait sync.WaitGroup
	for i := range writers {
		s := []documents.Store{a, b}[i%2]
		name := []string{"x", "y"}[i/2%2]
		wait.Go(func() {
			for range each {
				err := s.Change(t.Context(), name, func(old []byte) ([]byte, error) {
					n := 0
					if old != nil {
						n, _ = strconv.Atoi(string(old))
					}
					return []byte(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	reads(t, a, "x", strconv.Itoa(4*each))
	reads(t, b, "y", strconv.Itoa(2*each))
}

func documentNames(t *testing.T, a, b documents.Store) {
	good := []string{"-", "Server-A_b.json", "a", "a.b.c", "clock", strings.Repeat("n", 200)}
	for _, name := range good {
		replace(t, a, name, []byte(name))
	}
	named(t, b, good...)
	for _, name := range []string{"", ".", "..", ".a", "a.", "a/b", "no/folder", `a\b`, "../a", "a b", "é", "a\x00", "a:b", "lock", "a.lock", strings.Repeat("n", 201)} {
		called := false
		err := a.Change(t.Context(), name, func([]byte) ([]byte, error) { called = true; return []byte("x"), nil })
		if err == nil || called {
			t.Errorf("%q was taken for a name", name)
		}
		if _, err := a.Read(t.Context(), name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading %q: %v", name, err)
		}
	}
	named(t, b, good...)
}

func documentLength(t *testing.T, a, b documents.Store) {
	replace(t, a, "d", []byte("short"))
	err := a.Change(t.Context(), "d", func([]byte) ([]byte, error) { return make([]byte, documents.Most+1), nil })
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(documents.Most)) {
		t.Errorf("a document that is too long: %v", err)
	}
	reads(t, b, "d", "short")
	large := strings.Repeat("large ", 1<<18)
	replace(t, b, "d", []byte(large))
	if got, err := a.Read(t.Context(), "d"); err != nil || string(got) != large {
		t.Errorf("%d bytes came back as %d, %v", len(large), len(got), err)
	}
}

func documentCancelled(t *testing.T, a, b documents.Store) {
	replace(t, a, "d", []byte("1"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Read(over, "d"); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := a.Names(over); !errors.Is(err, context.Canceled) {
		t.Errorf("names: %v", err)
	}
	never := func([]byte) ([]byte, error) { return nil, errors.New("it was called") }
	if err := a.Change(over, "d", never); !errors.Is(err, context.Canceled) {
		t.Errorf("change: %v", err)
	}
	a.Watch(over, func() {}) // returns

	// Who waits for another's change may give up; the change goes on.
	waiting, giveUp := context.WithCancel(t.Context())
	gave := make(chan error, 1)
	err := a.Change(t.Context(), "d", func([]byte) ([]byte, error) {
		go func() { gave <- b.Change(waiting, "d", never) }()
		giveUp()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		return []byte("2"), nil
	})
	must(t, err)
	reads(t, b, "d", "2")

	// Who gives up in the middle of a change has it kept, or not, and is told which.
	middle, giveUp := context.WithCancel(t.Context())
	err = a.Change(middle, "d", func([]byte) ([]byte, error) { giveUp(); return []byte("3"), nil })
	if got, _ := b.Read(t.Context(), "d"); (err == nil) != (string(got) == "3") {
		t.Errorf("it is %q, and the error is %v", got, err)
	}
}

// documentWatched: every change is told, by whomever.
func documentWatched(t *testing.T, a, b documents.Store) {
	ctx, end := context.WithCancel(t.Context())
	told, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		a.Watch(ctx, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	// The watch may begin after a first change, which then nobody is told of.
	for first := true; first; {
		replace(t, b, "beginning", []byte(fmt.Sprint(documentsBegun.next())))
		select {
		case <-told:
			first = false
		case <-t.Context().Done():
			t.Fatal("no change is told")
		default:
		}
	}
	for i, change := range []func(){
		func() { replace(t, b, "d", []byte("1")) }, func() { replace(t, a, "d", []byte("22")) }, func() { replace(t, b, "d", nil) },
	} {
		want := []string{"1", "22", ""}[i]
		change()
		for got := "?"; got != want; { // an earlier change may be told of first
			<-told
			body, _ := a.Read(t.Context(), "d")
			got = string(body)
		}
	}
	end()
	<-over
}

// A counter makes each document another.
type counter struct {
	mu sync.Mutex
	n  int
}

var documentsBegun counter

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// documentCopied: what callers do with their bytes changes no document.
func documentCopied(t *testing.T, a, _ documents.Store) {
	body := []byte("abc")
	replace(t, a, "d", body)
	body[0] = 'x'
	got, err := a.Read(t.Context(), "d")
	must(t, err)
	got[1] = 'x'
	no := errors.New("no")
	_ = a.Change(t.Context(), "d", func(old []byte) ([]byte, error) { old[2] = 'x'; return old, no })
	reads(t, a, "d", "abc")
}

func documentDiscarded(t *testing.T, a, b documents.Store) {
	replace(t, a, "kept", []byte("1"))
	replace(t, a, "gone", []byte("2"))
	must(t, documents.Discard(t.Context(), b, "gone"))
	must(t, documents.Discard(t.Context(), b, "never"))
	lacksDocument(t, a, "gone")
	reads(t, b, "kept", "1")
}
