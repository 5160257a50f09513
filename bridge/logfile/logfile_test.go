package logfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOldFilesAreRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const gone = 1 << 30 // no process has this number
	running := fmt.Sprintf("bridge-20250101T000000-%d.jsonl", os.Getpid())
	names := []string{running, "notes.txt"}
	for i := range 30 {
		names = append(names, fmt.Sprintf("bridge-202502%02dT000000-%d.jsonl", i+1, gone))
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	left := files(folder)
	if n := len(left); runtime.GOOS != "windows" && n != maxFiles+1 || n > maxFiles+1 { // one is of a process that runs
		t.Errorf("%d files are left, want %d", n, maxFiles+1)
	}
	if runtime.GOOS != "windows" && filepath.Base(left[0]) != running {
		t.Errorf("the oldest is %s; the one of a process that runs was removed", left[0])
	}
	if last := left[len(left)-1]; !strings.Contains(last, fmt.Sprint(os.Getpid())) {
		t.Errorf("the newest is %s", last)
	}
	if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err != nil {
		t.Errorf("another file: %v", err)
	}
	if _, err := Open(filepath.Join(folder, "notes.txt", "log")); err == nil {
		t.Error("a file is a folder")
	}
}

func TestPIDOf(t *testing.T) {
	for name, want := range map[string]int{
		"/log/bridge-20250101T000000-4711.jsonl":                         4711,
		"/log/bridge-20250101T000000-4711-2025-01-02T00-00-00.000.jsonl": 4711, // set aside
		"/log/bridge-x.jsonl":                                            0, "/log/bridge-a-b.jsonl": 0,
	} {
		if got := pidOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
