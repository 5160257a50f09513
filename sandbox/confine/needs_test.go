//go:build !windows

package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// No program needs the home folder: not one that lies in it, nor one with it in its PATH,
// nor where the home is reached by a link.
func TestNeedsLeaveTheHomeOut(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(base, "home"), filepath.Join(base, "link")
	for _, dir := range []string{"bin", "lib", "tool"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server", "tool/server"} {
		if err := os.WriteFile(filepath.Join(home, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []string{home, link} {
		got := Needs(filepath.Join(at, "server"), []string{"HOME=" + at, "PATH=" + at + ":" + at + "/:" + home + "/bin:" + base})
		if want := []string{filepath.Join(at, "server"), filepath.Join(home, "bin")}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	got := Needs(filepath.Join(home, "tool", "server"), []string{"HOME=" + home})
	if want := []string{filepath.Join(home, "tool", "server"), filepath.Join(home, "tool")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
