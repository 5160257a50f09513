package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/atomicfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "fits": "12345678", "long": "123456789"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ways := map[string]func(name string) ([]byte, error){
		"Read":         func(name string) ([]byte, error) { return atomicfile.Read(filepath.Join(dir, name), 8) },
		"ReadUnlinked": func(name string) ([]byte, error) { return atomicfile.ReadUnlinked(filepath.Join(dir, name), 8) },
		"ReadIn":       func(name string) ([]byte, error) { return atomicfile.ReadIn(root, name, 8) },
	}
	for way, read := range ways {
		for name, want := range map[string]string{"empty": "", "fits": "12345678"} {
			if got, err := read(name); err != nil || string(got) != want {
				t.Errorf("%s of %s: %q, %v", way, name, got, err)
			}
		}
		for name, want := range map[string]error{"folder": atomicfile.ErrIrregular, "long": atomicfile.ErrTooLong, "none": fs.ErrNotExist} {
			if got, err := read(name); !errors.Is(err, want) || got != nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %s: %q, %v, want %v", way, name, got, err, want)
			}
		}
	}
}
