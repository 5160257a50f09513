package confine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a program needs is its installation and those of its PATH, but no home folder, and
// nothing that is not there.
func TestNeeds(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(base, name) }
	for _, folder := range []string{"home/bin", "node/bin", "node/lib", "tools"} {
		if err := os.MkdirAll(in(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"home/server", "home/bin/server", "node/bin/node"} {
		if err := os.WriteFile(in(file), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(in("node/bin/node"), in("tools/node")); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + in("home"), "PATH=" + in("tools") + ":" + in("home") + ":/:.:/usr/bin:" + in("gone")}
	for program, want := range map[string][]string{
		in("home/server"):     {in("home/server"), in("tools")},
		in("home/bin/server"): {in("home/bin/server"), in("home/bin"), in("tools")},
		in("tools/node"):      {in("tools/node"), in("node"), in("tools")},
		"/usr/bin/env":        {in("tools")},
	} {
		if diff := cmp.Diff(want, Needs(program, env)); diff != "" {
			t.Errorf("%s: %s", program, diff)
		}
	}
	if diff := cmp.Diff([]string(nil), Needs(in("tools/node"), env, in("tools"))); diff != "" {
		t.Errorf("a link that the program may have made: %s", diff)
	}
}
