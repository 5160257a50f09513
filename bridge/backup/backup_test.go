package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

const size = 20_000

func written(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.db")
	rows := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(rows) // the same each time, and nothing in it is twice
	if err := os.WriteFile(file, rows, 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, Manifest{Version: "1.2.3", Time: at, ConfigFile: "/etc/c.json"}, []Source{{Name: "store/audit.db", Path: file}, {Name: "state/pins-1/a.json", Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBackup(t *testing.T) {
	text, dir := written(t), t.TempDir()
	m, err := Read(bytes.NewReader(text), dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Format != Format || m.Version != "1.2.3" || m.ConfigFile != "/etc/c.json" || !m.Time.Equal(at) || len(m.Files) != 2 {
		t.Errorf("read %+v", m)
	}
	for name, want := range map[string]int64{"store/audit.db": size, "state/pins-1/a.json": 2} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// Wherever a backup ends early, and whichever byte is another, it is refused.
func TestDamaged(t *testing.T) {
	text := written(t)
	for n := 0; n < len(text); n += 97 {
		if _, err := Read(bytes.NewReader(text[:n]), t.TempDir()); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut off at byte %d of %d: %v", n, len(text), err)
		}
	}
	for n := 10; n < len(text); n += 89 { // the header of gzip says nothing of interest
		bad := bytes.Clone(text)
		bad[n] ^= 0x10
		if _, err := Read(bytes.NewReader(bad), t.TempDir()); err == nil {
			t.Fatalf("byte %d of %d is another, and it was read", n, len(text))
		}
	}
}

// packed makes an archive as somebody else may.
func packed(t *testing.T, m Manifest, entries ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	says, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append([]tar.Header{{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(says))}}, entries...) {
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		content := says
		if e.Name != manifestName {
			content = make([]byte, e.Size)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestRefused(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	one := func(name string) Manifest { return Manifest{Format: 1, Files: []File{{name, 0, empty}}} }
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for what, row := range map[string]struct {
		from io.Reader
		want string
	}{
		"outside":     {packed(t, one("../x"), reg("../x")), `it has a file "../x"`},
		"by a detour": {packed(t, one("state/../x"), reg("state/../x")), `it has a file "state/../x"`},
		"absolute":    {packed(t, one("/x"), reg("/x")), `it has a file "/x"`},
		"twice":       {packed(t, Manifest{Format: 1, Files: []File{{"a", 0, empty}, {"a", 0, empty}}}, reg("a"), reg("a")), `it has a file "a"`},
		"link":        {packed(t, one("a"), tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}), "should be"},
		"another":     {packed(t, one("a"), reg("b")), `where "a"`},
		"one more":    {packed(t, one("a"), reg("a"), reg("b")), `"b" that it does not name`},
		"one less":    {packed(t, one("a")), "looking for a"},
		"no format":   {packed(t, Manifest{}), "names no format"},
		"no archive":  {strings.NewReader("SQLite format 3"), "reading it"},
		"too new":     {packed(t, Manifest{Format: Format + 1, Version: "9.0.0"}), "written by codemode-bridge 9.0.0 in format 2, and this release reads formats up to 1: update"},
	} {
		dir := t.TempDir()
		if _, err := Read(row.from, filepath.Join(dir, "in")); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
			t.Errorf("%s: a file was written outside", what)
		}
	}
}
