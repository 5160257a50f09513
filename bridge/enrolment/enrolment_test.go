package enrolment

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
)

// A book is a store in memory with a key.
type book struct{ *memstore.Store }

func (book) Key(string) ([]byte, error) { return make([]byte, 32), nil }
func (book) WholeAt() time.Time         { return time.Time{} }

var began = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// enrolled returns a log of nine rows, a minute apart, of which the centre has some.
func enrolled(t *testing.T, has int64) (ledger.Book, Folder) {
	t.Helper()
	b := book{memstore.New(nil)}
	for i := range 9 {
		if err := b.Record(t.Context(), ledger.Record{Event: ledger.Intent, Time: began.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	store, _, err := b.LinksAfter(t.Context(), 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := Folder(filepath.Join(t.TempDir(), "centre"))
	if _, err := f.Key(true); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(Enrolment{Laptop: "ann", From: wire.Head{Store: store, Seq: has}}); err != nil {
		t.Fatal(err)
	}
	return Keeping(b, f), f
}

func TestPruneKeepsWhatTheCentreHasNot(t *testing.T) {
	later := began.Add(time.Hour)
	for _, test := range []struct {
		name   string
		has    int64
		before time.Time
		want   int64
	}{
		{"nothing was sent", 0, later, 0},
		{"four rows were sent", 4, later, 4},
		{"four were sent, two are old", 4, began.Add(2 * time.Minute), 2},
		{"all were sent", 9, later, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, _ := enrolled(t, test.has)
			if n, err := b.Prune(t.Context(), test.before); err != nil || n != test.want {
				t.Errorf("%d rows were removed, %v; want %d", n, err, test.want)
			}
		})
	}
	t.Run("it has left", func(t *testing.T) {
		b, f := enrolled(t, 0)
		if err := f.Leave(); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Prune(t.Context(), later); err != nil || n != 9 {
			t.Errorf("%d rows were removed, %v", n, err)
		}
	})
	t.Run("another log", func(t *testing.T) {
		b, f := enrolled(t, 9)
		if err := f.write("sent.json", Sent{Head: wire.Head{Store: "other", Seq: 9}}); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Prune(t.Context(), later); err != nil || n != 0 {
			t.Errorf("%d rows were removed, %v", n, err)
		}
	})
	t.Run("what was sent is not known", func(t *testing.T) {
		b, f := enrolled(t, 9)
		if err := os.WriteFile(f.path("sent.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Prune(t.Context(), later); err == nil || n != 0 {
			t.Errorf("%d rows were removed, %v", n, err)
		}
	})
}

// The key is made once, for this user alone, and gone after Leave.
func TestKey(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "centre"))
	if _, err := f.Key(false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a key: %v", err)
	}
	made, err := f.Key(true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Key(true); err != nil || !made.Equal(again) {
		t.Errorf("again: %v", err)
	}
	if info, err := os.Stat(f.path("key")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.WriteFile(f.path("key"), []byte("5e5e"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Key(true); err == nil || !strings.Contains(err.Error(), "64 hexadecimal digits") {
		t.Errorf("a damaged key: %v", err)
	}
	if err := f.Leave(); err != nil {
		t.Error(err)
	}
	if _, err := f.Key(false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after it has left: %v", err)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://centre.example.com":      "https://centre.example.com",
		"https://centre.example.com/":     "https://centre.example.com",
		"https://centre.example.com:8443": "https://centre.example.com:8443",
		"https://example.com/bridge/":     "https://example.com/bridge",
		"http://127.0.0.1:7420":           "http://127.0.0.1:7420",
		"http://localhost:7420":           "http://localhost:7420",
		"http://centre.example.com":       "",
		"http://127.0.0.1.example.com":    "",
		"centre.example.com":              "",
		"https://ann:x@centre.example":    "",
		"https://centre.example?x=1":      "",
		"file:///etc/passwd":              "",
		"":                                "",
	} {
		if got, err := Address(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A machine that is enrolled nowhere asks nobody.
func TestNotEnrolled(t *testing.T) {
	b := book{memstore.New(nil)}
	f := Folder(filepath.Join(t.TempDir(), "centre"))
	s := NewSender(Options{Folder: f, Log: b, Transport: refusing{t}})
	if _, err := s.turn(t.Context(), true); !errors.Is(err, ErrNotEnrolled) {
		t.Error(err)
	}
	if _, err := os.Stat(string(f)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it makes a folder: %v", err)
	}
}

type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.t.Error("somebody was asked")
	return nil, context.Canceled
}
