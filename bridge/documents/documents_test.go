package documents_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/storetest"
)

func TestFolder(t *testing.T) {
	storetest.Documents(t, func(t *testing.T) (documents.Store, func(*testing.T) documents.Store) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		return documents.Folder(dir), func(*testing.T) documents.Store { return documents.Folder(dir) }
	})
}

func TestMemory(t *testing.T) {
	storetest.Documents(t, func(*testing.T) (documents.Store, func(*testing.T) documents.Store) {
		m := documents.Memory()
		return m, func(*testing.T) documents.Store { return m }
	})
}

// Files are for their owner alone, and a link in the place of one is not followed.
func TestFolderFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	f := documents.Folder(dir)
	if err := f.Change(t.Context(), "d", func([]byte) ([]byte, error) { return []byte("secret"), nil }); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, "d"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	for _, other := range []string{".d.x.tmp", "a b"} {
		if err := os.WriteFile(filepath.Join(dir, other), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "d"), filepath.Join(dir, "link")); err != nil {
		t.Skip("no links here: ", err)
	}
	if _, err := f.Read(t.Context(), "link"); err == nil {
		t.Error("a link was followed")
	}
	if err := f.Change(t.Context(), "link", func([]byte) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("a link was replaced")
	}
	if names, err := f.Names(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("names %q, %v", names, err)
	}
}
