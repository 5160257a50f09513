package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var commitTime = time.Unix(1700000000, 0).UTC()

// filesIn are the files of an npm package by name.
func filesIn(t *testing.T, text []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" || !h.ModTime.Equal(commitTime) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		all[h.Name] = string(content)
	}
}

// The order in which entries are given does not matter, nor does when they are packed.
func TestArchivesAreTheSameBytes(t *testing.T) {
	entries := []entry{{"b/program", 0o755, []byte("runs")}, {"a", 0o644, []byte("read")}}
	turned := slices.Clone(entries)
	slices.Reverse(turned)
	for name, pack := range map[string]func([]entry, time.Time) ([]byte, error){"tar": tarred, "zip": zipped} {
		one, err := pack(entries, commitTime)
		if err != nil {
			t.Fatal(err)
		}
		two, err := pack(turned, commitTime)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s: the order matters", name)
		}
		later, err := pack(entries, commitTime.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(one, later) {
			t.Errorf("%s: entries do not have the time that they were given", name)
		}
	}
	text, err := zipped(entries, commitTime)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if f := z.File[1]; len(z.File) != 2 || f.Name != "b/program" || f.Mode() != 0o755 || !f.Modified.Equal(commitTime) {
		t.Errorf("the zip has %d files, the second is %s of mode %v and %v", len(z.File), f.Name, f.Mode(), f.Modified)
	}
}

func TestVersions(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000001")
	for version, good := range map[string]bool{
		"1.2.3": true, "0.0.1-rc.1": true, "10.20.30-a-b": true,
		"": false, "v1.2.3": false, "1.2": false, "01.2.3": false, "1.2.3+5": false, "1.2.3 -X main.commit=1": false, "1.2.3-": false, "1.2.3\n": false,
	} {
		r, err := begin(version, "abc", filepath.Join(t.TempDir(), "dist"))
		if (err == nil) != good {
			t.Errorf("%q: %v", version, err)
		}
		if r != nil && (r.time != commitTime || r.commit != "abc") {
			t.Errorf("%q is of %v and %q", version, r.time, r.commit)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old.tgz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := begin("1.2.3", "abc", full); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder with an older release: %v", err)
	}
	for _, epoch := range []string{"", "soon", "17"} {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		if _, err := begin("1.2.3", "abc", filepath.Join(full, "dist")); err == nil {
			t.Errorf("SOURCE_DATE_EPOCH=%q is a time", epoch)
		}
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != 6 {
		t.Errorf("all are %v (%v)", all, err)
	}
	if some, err := choose("windows/arm64,linux/amd64"); err != nil || !slices.Equal(some, []platform{{"windows", "arm64"}, {"linux", "amd64"}}) {
		t.Errorf("chosen were %v (%v)", some, err)
	}
	for _, list := range []string{"linux", "linux/amd64,", "plan9/amd64"} {
		if some, err := choose(list); err == nil {
			t.Errorf("%s: %v", list, some)
		}
	}
}

// The package that people name lists one for each platform, of the same version, which
// npm installs on that platform alone.
func TestPackages(t *testing.T) {
	r := &release{version: "1.2.3", time: commitTime}
	read := func(file string, text []byte, err error) (string, manifest, map[string]string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		files := filesIn(t, text)
		var m manifest
		if err := json.Unmarshal([]byte(files["package/package.json"]), &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return file, m, files
	}
	file, first, files := read(r.mainPackage([]byte("the licence")))
	if file != "codemode-bridge-1.2.3.tgz" || first.Name != "codemode-bridge" || first.Version != "1.2.3" || len(first.Optional) != len(platforms) {
		t.Errorf("%s: %+v", file, first)
	}
	if program := files["package/"+first.Bin["codemode-bridge"]]; !strings.HasPrefix(program, "#!/usr/bin/env node\n") {
		t.Errorf("the program is %.40q", program)
	}
	if !strings.HasPrefix(files["package/README.md"], "# codemode-bridge 1.2.3\n") {
		t.Errorf("the README begins with %.40q", files["package/README.md"])
	}
	for _, p := range platforms {
		file, m, files := read(r.platformPackage(p, []entry{{"program", 0o755, []byte("runs")}}, []entry{{"LICENSE", 0o644, []byte("the licence")}}))
		os, cpu := p.npm()
		if file != "codemode-bridge-"+os+"-"+cpu+"-1.2.3.tgz" || first.Optional[m.Name] != "1.2.3" || m.Version != "1.2.3" || !slices.Equal(m.OS, []string{os}) || !slices.Equal(m.CPU, []string{cpu}) || m.Bin != nil {
			t.Errorf("%s: %+v", file, m)
		}
		if files["package/bin/program"] != "runs" || files["package/LICENSE"] != "the licence" {
			t.Errorf("%s has %v", file, files)
		}
	}
}

// What a module wants passed on is found at its top and on the way to the packages that
// are used; code that is called so is none.
func TestPapersOf(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "top\r\n", "a/b/LICENSE_V8": "b", "a/COPYING.txt": "a", "other/LICENSE": "unused", "a/license.go": "package a", "NOTICE": "n", "a/b/LICENSES/x": "a folder",
		"UNLICENSE": "u", "LIBC-LICENSE.md": "l", "README": "no", "licensed.txt": "no",
	} {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	if err := papersOf(top, filepath.Join(top, "a", "b"), got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"LIBC-LICENSE.md", "LICENSE", "NOTICE", "UNLICENSE", "a/COPYING.txt", "a/b/LICENSE_V8"}; !slices.Equal(sorted(got), want) {
		t.Errorf("found %q, want %q", sorted(got), want)
	}
	if got["LICENSE"] != "top\n" {
		t.Errorf("the text is %q", got["LICENSE"])
	}
}
