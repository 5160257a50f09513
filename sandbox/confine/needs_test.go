package confine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A PATH names what programs need, and now and then more: the home folder, or a folder of
// somebody else's.
func TestNeedsOfAPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders of others are not closed by modes there")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	home := in("users", "me")
	for _, folder := range []string{filepath.Join(home, "scripts"), filepath.Join(home, "bin"), in("tools"), in("closed", "bin")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(in("users"), in("link")); err != nil {
		t.Fatal(err)
	}
	want := []string{in("tools", "server"), in("tools"), filepath.Join(home, "scripts"), filepath.Join(home, "bin"), in("closed", "bin")}
	if os.Geteuid() != 0 { // nothing is closed to root
		if err := os.Chmod(in("closed"), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(in("closed"), 0o700) })
		want = want[:len(want)-1]
	}
	env := []string{"HOME=" + in("link", "me")}
	env = append(env, "PATH="+filepath.Join(home, "scripts")+":"+home+":"+in("users")+":"+base+":"+in("link")+":/:"+filepath.Join(home, "bin")+":"+in("closed", "bin")+":relative:")
	if diff := cmp.Diff(want, Needs(in("tools", "server"), env)); diff != "" {
		t.Errorf("what a program needs (-want +got):\n%s", diff)
	}
}
