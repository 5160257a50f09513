package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"codemode-bridge/bridge/atomicfile"
)

// holds checks that a folder has one file alone, with this content and mode.
func holds(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(all) != 1 {
		t.Fatalf("the folder has %v (%v), want one file", all, err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("the file has %q (%v), want %q", got, err, content)
	}
	if info, err := os.Stat(path); runtime.GOOS != "windows" && (err != nil || info.Mode() != mode) {
		t.Errorf("the file's mode is %v (%v), want %v", info.Mode(), err, mode)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for _, content := range []string{"long enough to see", "", "new"} {
		if err := atomicfile.Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		holds(t, path, content, 0o600)
	}
	if err := atomicfile.Replace(path, []byte("open"), atomicfile.Options{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "open", 0o644)
}

// Before sees the old content, and its error keeps it.
func TestBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	err := atomicfile.Replace(path, []byte("new"), atomicfile.Options{Before: func() error {
		if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
			t.Errorf("before it is replaced the file has %q (%v)", got, err)
		}
		return no
	}})
	if err != no { // as it is
		t.Errorf("the error is %v", err)
	}
	holds(t, path, "old", 0o600)
}

// What cannot be replaced stays, and nothing is left beside it.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	if err := atomicfile.Write(filepath.Join(dir, "none", "a"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	path := filepath.Join(dir, "a")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 || !all[0].IsDir() {
		t.Errorf("the folder has %v (%v)", all, err)
	}
}
