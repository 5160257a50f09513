package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Paths that are followed in one look ask the system once for each folder on the way,
// and are judged by one state of the files.
func TestSight(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := filepath.Join(root, "a")
	if err := os.Mkdir(a, 0o700); err != nil {
		t.Fatal(err)
	}
	look := make(sight)
	for _, name := range []string{"x", "y", "z", "x"} {
		if got, err := look.follow(filepath.Join(a, name)); err != nil || got != filepath.Join(a, name) {
			t.Fatal(got, err)
		}
	}
	var asked []string
	for _, path := range slices.Sorted(maps.Keys(look)) {
		if path != root && filepath.Dir(path) != filepath.Dir(root) && len(path) > len(root) {
			asked = append(asked, path[len(root)+1:])
		}
	}
	if diff := cmp.Diff([]string{"a", filepath.Join("a", "x"), filepath.Join("a", "y"), filepath.Join("a", "z")}, asked); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}

	// The folder becomes something else: only the next look sees that.
	if err := os.Rename(a, filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := look.follow(filepath.Join(a, "x")); err != nil || got != filepath.Join(a, "x") {
		t.Errorf("the same look leads to %q, %v", got, err)
	}
	if got, err := make(sight).follow(filepath.Join(a, "x")); err == nil {
		t.Errorf("another look leads to %q, through a file", got)
	}
}
