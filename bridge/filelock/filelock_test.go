package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Try(first); err != nil {
		t.Fatal(err)
	}
	if err := Try(second); !errors.Is(err, ErrHeld) {
		t.Errorf("while it is held: %v", err)
	}
	if err := TryShared(second); !errors.Is(err, ErrHeld) {
		t.Errorf("shared, while it is held: %v", err)
	}
	first.Close()
	third := open()
	if err := errors.Join(TryShared(second), TryShared(third)); err != nil {
		t.Errorf("two share it after it was let go: %v", err)
	}
	if err := Try(open()); !errors.Is(err, ErrHeld) {
		t.Errorf("while it is shared: %v", err)
	}
	second.Close()
	third.Close()
	if err := Try(open()); err != nil {
		t.Errorf("after it was let go: %v", err)
	}
}
