package alive

import (
	"path/filepath"
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
