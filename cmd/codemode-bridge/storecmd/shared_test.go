package storecmd

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"

	"codemode-bridge/bridge/config"
)

// Only a database and an id make a configuration the same on several machines.
func TestShares(t *testing.T) {
	read := func(text string) *config.Config {
		cfg, err := config.Parse("/x/config.json", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const at = `"store": "postgres://db.example/x"`
	for text, want := range map[string]bool{`{}`: false, `{"id": "a"}`: false, `{` + at + `}`: false, `{"id": "a", ` + at + `}`: true} {
		if got := Shares(read(text)); got != want {
			t.Errorf("%s shares: %t", text, got)
		}
	}
	one, two := read(`{"id": "a", `+at+`}`), read(`{"id": "b", `+at+`}`)
	if kindFor("pins", one) == kindFor("pins", two) || kindFor("pins", one) == kindFor("other", one) {
		t.Error("two configurations have the same documents")
	}
}

// A store that cannot be opened is an error, never an absent document; and a watch of it
// goes on trying until it ends.
func TestLaterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no, tries := errors.New("no store"), 0
		s := NewShared(func(context.Context, *config.Config) (config.Audit, error) { tries++; return config.Audit{}, no })
		d := s.Documents("pins", &config.Config{Head: config.Head{ID: "a"}})
		if _, err := d.Read(t.Context(), "x"); !errors.Is(err, no) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("read: %v", err)
		}
		if _, err := d.Names(t.Context()); !errors.Is(err, no) {
			t.Errorf("names: %v", err)
		}
		if err := d.Change(t.Context(), "x", func([]byte) ([]byte, error) { t.Error("it was called"); return nil, nil }); !errors.Is(err, no) {
			t.Errorf("change: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*openAgain-1)
		defer cancel()
		before := tries
		d.Watch(ctx, func() { t.Error("nothing changed") })
		if tries != before+3 {
			t.Errorf("it tried %d times", tries-before)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
