//go:build real

package main_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the tests' release is of.
const (
	releaseVersion = "7.8.9-test.1"
	releaseCommit  = "0123456789abcdef0123456789abcdef01234567"
	releaseTime    = 1700000000
)

// makeRelease makes a release of the tree at root into a folder.
func makeRelease(root, into string, platforms ...string) error {
	cmd := exec.Command("go", "run", "./.ci/release", "-version", releaseVersion, "-commit", releaseCommit, "-out", into, "-formats", "archive,npm,oci", "-platforms", strings.Join(platforms, ","))
	cmd.Dir, cmd.Env = root, append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", releaseTime))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making a release: %w\n%s", err, out)
	}
	return nil
}

// hostPlatform is this machine's, with the name of its npm package.
func hostPlatform() (platform, npm string) {
	arch := strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	return runtime.GOOS + "/" + runtime.GOARCH, runtime.GOOS + "-" + arch
}

// releaseOnce makes the release for all tests: for this machine, and for the two others
// whose packages `make cross` has compiled.
var releaseOnce = func() func(root, into string) error {
	var once sync.Once
	var err error
	return func(root, into string) error {
		once.Do(func() {
			host, _ := hostPlatform()
			if err = os.RemoveAll(into); err == nil {
				err = makeRelease(root, into, slices.Compact([]string{host, "darwin/arm64", "windows/amd64"})...)
			}
		})
		return err
	}
}()

// released is the folder with the release.
func (r *real) released(t *testing.T) string {
	t.Helper()
	into := filepath.Join(r.npm, "release")
	if err := releaseOnce(moduleRoot(t), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// An unpacked is one file of an archive.
type unpacked struct {
	mode os.FileMode
	text []byte
}

// unpack reads an archive, and checks that nothing in it tells where it was made.
func unpack(t *testing.T, file string) map[string]unpacked {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]unpacked{}
	var names []string
	add := func(name string, mode os.FileMode, at time.Time, r io.Reader) {
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if at.Unix() != releaseTime {
			t.Errorf("%s: %s is of %v", filepath.Base(file), name, at)
		}
		all[name] = unpacked{mode, content}
		names = append(names, name)
	}
	if strings.HasSuffix(file, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.Mode(), f.Modified, r)
		}
	} else {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for archive := tar.NewReader(z); ; {
			h, err := archive.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
				t.Errorf("%s: %s belongs to %d %q, %d %q", filepath.Base(file), h.Name, h.Uid, h.Uname, h.Gid, h.Gname)
			}
			add(h.Name, h.FileInfo().Mode(), h.ModTime, archive)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%s: not in order: %q", filepath.Base(file), names)
	}
	return all
}

// A release is the same bytes wherever it is made, its archives have what they should,
// and the one for this machine runs from any folder and through a link.
func TestRealRelease(t *testing.T) {
	r := newReal(t)
	dist := r.released(t)
	host, npm := hostPlatform()
	archives := map[string]string{ // by platform: what comes after the version
		host: "_" + strings.Replace(host, "/", "_", 1) + ".tar.gz", "darwin/arm64": "_darwin_arm64.tar.gz", "windows/amd64": "_windows_amd64.zip",
	}
	packages := map[string]string{host: "-" + npm, "darwin/arm64": "-darwin-arm64", "windows/amd64": "-win32-x64", "": ""}

	t.Run("the same bytes", func(t *testing.T) {
		copied := copyOfTree(t)
		again := filepath.Join(t.TempDir(), "dist")
		if err := makeRelease(copied, again, host); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"codemode-bridge_" + releaseVersion + archives[host], "codemode-bridge-" + npm + "-" + releaseVersion + ".tgz", "codemode-bridge-" + releaseVersion + ".tgz"} {
			a, b := mustRead(t, filepath.Join(dist, name)), mustRead(t, filepath.Join(again, name))
			if a != b {
				t.Errorf("%s: %d bytes here, %d others in another folder", name, len(a), len(b))
			}
		}
		for name, f := range unpack(t, filepath.Join(again, "codemode-bridge_"+releaseVersion+archives[host])) {
			if bytes.Contains(f.text, []byte(copied)) {
				t.Errorf("%s has the folder that it was built in", name)
			}
		}
	})

	t.Run("checksums", func(t *testing.T) {
		want := map[string]bool{}
		if system, arch, _ := strings.Cut(host, "/"); system == "linux" {
			want["codemode-bridge-"+releaseVersion+"-oci-"+arch+".tar"] = true
		}
		for _, end := range archives {
			want["codemode-bridge_"+releaseVersion+end] = true
		}
		for _, end := range packages {
			want["codemode-bridge"+end+"-"+releaseVersion+".tgz"] = true
		}
		for _, line := range strings.Split(strings.TrimSpace(mustRead(t, filepath.Join(dist, "SHA256SUMS"))), "\n") {
			sum, name, _ := strings.Cut(line, "  ")
			if got := fmt.Sprintf("%x", sha256.Sum256([]byte(mustRead(t, filepath.Join(dist, name))))); got != sum || !want[name] {
				t.Errorf("%s: %s is listed, it has %s", name, sum, got)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("no checksum of %v", want)
		}
	})

	for platform, end := range archives {
		t.Run(platform, func(t *testing.T) {
			system, arch, _ := strings.Cut(platform, "/")
			exe := ""
			if system == "windows" {
				exe = ".exe"
			}
			folder := "codemode-bridge_" + releaseVersion + "_" + system + "_" + arch + "/"
			archive := unpack(t, filepath.Join(dist, "codemode-bridge_"+releaseVersion+end))
			inNPM := unpack(t, filepath.Join(dist, "codemode-bridge"+packages[platform]+"-"+releaseVersion+".tgz"))
			if len(archive) != 5 || len(inNPM) != 6 {
				t.Errorf("%d files in the archive, %d in the package", len(archive), len(inNPM))
			}
			for _, name := range []string{"LICENSE", "README.md", "THIRD_PARTY_NOTICES"} {
				if f := archive[folder+name]; f.mode != 0o644 || !bytes.Equal(f.text, inNPM["package/"+name].text) {
					t.Errorf("%s: mode %v, %d bytes", name, f.mode, len(f.text))
				}
			}
			notices := string(archive[folder+"THIRD_PARTY_NOTICES"].text)
			for _, want := range []string{"\nGo go", "\ngithub.com/dop251/goja v", "ftoa/LICENSE_LUCENE", "Permission is hereby granted", "Redistribution and use in source and binary forms"} {
				if !strings.Contains(notices, want) {
					t.Errorf("the notices have no %q", want)
				}
			}
			for _, name := range []string{"codemode-bridge", "codemode-worker"} {
				f := archive[folder+name+exe]
				if f.mode != 0o755 || !bytes.Equal(f.text, inNPM["package/bin/"+name+exe].text) {
					t.Errorf("%s: mode %v, %d bytes", name, f.mode, len(f.text))
				}
				programFor(t, f.text, name, system, arch)
			}
		})
	}

	t.Run("it runs", func(t *testing.T) {
		base := t.TempDir()
		into := filepath.Join(base, "a folder")
		for name, f := range unpack(t, filepath.Join(dist, "codemode-bridge_"+releaseVersion+archives[host])) {
			path := filepath.Join(into, filepath.Base(name))
			if err := os.MkdirAll(into, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.text, f.mode); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(base, "codemode-bridge")
		if err := os.Symlink(filepath.Join("a folder", "codemode-bridge"), link); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{filepath.Join(into, "codemode-bridge"), link} {
			unpacked := &real{bin: program, env: r.env}
			want := regexp.MustCompile(`^codemode-bridge ` + regexp.QuoteMeta(releaseVersion) + ` \(go1\.\S+, ` + host + `, commit ` + releaseCommit + `\)\n$`)
			if got := unpacked.bridge(t, "", "version"); !want.MatchString(got) {
				t.Errorf("%s: version says %q", program, got)
			}
			config := filepath.Join(base, "config.json")
			mustWrite(t, config, `{"servers": {"utils": {"type": "builtin", "builtin": "utils"}}}`)
			if got := unpacked.bridge(t, "", "eval", "-c", config, `return await codemode.utils__base64_encode({text: "hi"})`); !strings.Contains(got, "aGk=") {
				t.Errorf("%s: eval says %q", program, got)
			}
		}
	})
}

// programFor checks that a program is one for a platform, by what its format and Go say.
func programFor(t *testing.T, text []byte, name, system, arch string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	has := map[string]string{}
	for _, s := range info.Settings {
		has[s.Key] = s.Value
	}
	if has["GOOS"] != system || has["GOARCH"] != arch || has["CGO_ENABLED"] != "0" || has["-trimpath"] != "true" || has["vcs.revision"] != "" || info.Path != "codemode-bridge/cmd/"+name {
		t.Errorf("%s was built as %s with %v", name, info.Path, has)
	}
	switch system {
	case "windows":
		f, err := pe.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h, ok := f.OptionalHeader.(*pe.OptionalHeader64); f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || !ok || h.Subsystem != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI {
			t.Errorf("%s: machine %#x, header %+v", name, f.Machine, f.OptionalHeader)
		}
	case "darwin":
		f, err := macho.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const signature = 0x1d // LC_CODE_SIGNATURE: such a Mac starts nothing without one
		signed := slices.ContainsFunc(f.Loads, func(l macho.Load) bool { return f.ByteOrder.Uint32(l.Raw()) == signature })
		if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec || !signed {
			t.Errorf("%s: cpu %v, type %v, signed %t", name, f.Cpu, f.Type, signed)
		}
	}
}

// copyOfTree copies the files that git knows, or would add, into another folder.
func copyOfTree(t *testing.T) string {
	t.Helper()
	root, into := moduleRoot(t), filepath.Join(t.TempDir(), "elsewhere", "tree")
	for _, name := range strings.Split(strings.Trim(filesOfTree(t, root), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(into, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return into
}

func filesOfTree(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-co", "-z", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
