package confine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nothing counts on what Windows does for a box, and each step says why.
func TestRestricted(t *testing.T) {
	const no, files = "not available on Windows", "untried: low integrity, which keeps it from writing, not from reading"
	for _, row := range []struct {
		box   Box
		files string
	}{
		{Box{}, files},
		{Box{Read: []string{`C:\data`}}, files},
		{Box{Write: []string{`C:\data`}}, no},
	} {
		steps := row.box.restricted()
		want := Steps{Files: row.files, Processes: no, Network: no, Landlock: no, Powers: "untried: a restricted token", Calls: no, Limits: "untried: a job object"}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("%+v: want and got:\n%s", row.box, diff)
		}
		if holds := row.box.Holds(steps); holds != (Hold{}) {
			t.Errorf("%+v: holds %+v", row.box, holds)
		}
		lacks := strings.Join(row.box.Lacks(steps), "\n")
		for _, what := range []string{"which files", "which hosts", "stays in its box (powers: untried: a restricted token)"} {
			if !strings.Contains(lacks, what) {
				t.Errorf("%+v: %q is not lacking in %s", row.box, what, lacks)
			}
		}
	}
}

// Temporary files have one place, however its variables are written.
func TestWithTemp(t *testing.T) {
	env := []string{`Path=C:\bin`, `temp=C:\a`, `TMP=C:\b`, "TEMPERATURE=3", "=C:=C:\\"}
	want := []string{`Path=C:\bin`, "TEMPERATURE=3", "=C:=C:\\", `TEMP=C:\box`, `TMP=C:\box`}
	if diff := cmp.Diff(want, withTemp(env, `C:\box`)); diff != "" {
		t.Errorf("want and got:\n%s", diff)
	}
}
