//go:build unix

package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"codemode-bridge/bridge/atomicfile"
)

// Nobody waits for a pipe, and a link is followed where that is said.
func TestReadPipesAndLinks(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("x"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for way, read := range map[string]func(path string) ([]byte, error){
		"Read":         func(path string) ([]byte, error) { return atomicfile.Read(path, 8) },
		"ReadUnlinked": func(path string) ([]byte, error) { return atomicfile.ReadUnlinked(path, 8) },
		"ReadIn":       func(path string) ([]byte, error) { return atomicfile.ReadIn(root, filepath.Base(path), 8) },
	} {
		if _, err := read(pipe); !errors.Is(err, atomicfile.ErrIrregular) {
			t.Errorf("%s of a pipe: %v", way, err)
		}
		got, err := read(link)
		if way == "ReadUnlinked" {
			if !errors.Is(err, atomicfile.ErrIrregular) {
				t.Errorf("%s of a link: %q, %v", way, got, err)
			}
		} else if err != nil || string(got) != "x" {
			t.Errorf("%s of a link: %q, %v", way, got, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", file); err != nil { // out of the folder
		t.Fatal(err)
	}
	if _, err := atomicfile.ReadIn(root, "link", 8); err == nil || errors.Is(err, atomicfile.ErrIrregular) {
		t.Errorf("through a link out of the folder: %v", err)
	}
}
