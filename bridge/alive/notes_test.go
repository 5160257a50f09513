package alive

import (
	"path/filepath"
	"slices"
	"testing"
)

// A note holds as long as the process that left it.
func TestNotes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bridges")
	a, err := Join(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		if got := Told(dir, "page"); got != want {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	says("")
	if err := Tell(dir, "a", "page", "http://one"); err != nil {
		t.Fatal(err)
	}
	says("http://one")
	if got := Told(dir, "another page"); got != "" {
		t.Errorf("about something else is told %q", got)
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	says("")
	if err := Tell(dir, "../a", "page", "http://two"); err != nil {
		t.Fatal(err)
	}
	says("") // nobody runs under such a name
}

// All notes of processes that run are listed; one that is taken back is not.
func TestAllNotes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "serving")
	for _, name := range []string{"a", "b"} {
		m, err := Join(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
	}
	for _, one := range [][3]string{{"a", "x", "one"}, {"a", "y", "two"}, {"b", "z", "three"}, {"gone", "w", "four"}} {
		if err := Tell(dir, one[0], one[1], one[2]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what is gone already is no error
		if err := Forget(dir, "y"); err != nil {
			t.Fatal(err)
		}
	}
	got := Notes(dir)
	slices.Sort(got)
	if want := []string{"one", "three"}; !slices.Equal(got, want) {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	if got := Notes(filepath.Join(dir, "nowhere", "x")); got != nil {
		t.Errorf("a folder that is not there has notes: %q", got)
	}
}
