package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testRelease  = &release{version: "1.2.3-rc.1", commit: "abc", time: commitTime, repository: "https://github.com/acme/bridge"}
	testPapers   = []entry{{"LICENSE", 0o644, []byte("the licence")}, {"README.md", 0o644, []byte("an archive's")}, {"THIRD_PARTY_NOTICES", 0o644, []byte("theirs")}}
	testPrograms = []entry{{"codemode-bridge", 0o755, []byte("bridge")}, {"codemode-worker", 0o755, []byte("worker")}}
	testShared   = &shared{
		completions: map[string][]byte{"bash": []byte("b"), "zsh": []byte("z"), "fish": []byte("f")},
		manual:      []byte("man"), documents: []entry{{"docs/install.md", 0o644, []byte("install")}}, units: []entry{{"usr/lib/systemd/system/codemode-bridge.service", 0o644, []byte("[Unit]")}},
	}
)

// parts are the members of an ar archive.
func parts(t *testing.T, text []byte) (names []string, contents map[string][]byte) {
	t.Helper()
	rest, found := bytes.CutPrefix(text, []byte("!<arch>\n"))
	if !found {
		t.Fatal("no ar archive")
	}
	contents = map[string][]byte{}
	for len(rest) > 0 {
		var size int
		name := strings.TrimSpace(string(rest[:16]))
		if _, err := fmt.Sscan(string(rest[48:58]), &size); err != nil || string(rest[58:60]) != "`\n" {
			t.Fatalf("%s: header %q (%v)", name, rest[:60], err)
		}
		names, contents[name] = append(names, name), rest[60:60+size]
		rest = rest[60+size+size%2:]
	}
	return names, contents
}

// A package for Debian has what deb(5) wants in its order, every folder before what is in
// it, and the sums of all files.
func TestDeb(t *testing.T) {
	p := platform{"linux", "arm64"}
	files, err := testRelease.linuxPackages(p, testShared, testPrograms, testPapers)
	if err != nil {
		t.Fatal(err)
	}
	text := files["codemode-bridge_1.2.3-rc.1_linux_arm64.deb"]
	names, contents := parts(t, text)
	if !slices.Equal(names, []string{"debian-binary", "control.tar.gz", "data.tar.gz"}) || string(contents["debian-binary"]) != "2.0\n" {
		t.Errorf("it has %q", names)
	}
	control := filesIn(t, contents["control.tar.gz"])
	if !strings.HasPrefix(control["./control"], "Package: codemode-bridge\nVersion: 1.2.3~rc.1\nArchitecture: arm64\n") || len(control) != 2 {
		t.Errorf("control:\n%s", control["./control"])
	}
	data := filesIn(t, contents["data.tar.gz"])
	z, err := gzip.NewReader(bytes.NewReader(contents["data.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"./": true}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if above := filepath.ToSlash(filepath.Dir(strings.TrimSuffix(h.Name, "/"))); above != "." && !seen["./"+above+"/"] {
			t.Errorf("%s comes before its folder", h.Name)
		}
		seen[h.Name] = true
		if h.Typeflag == tar.TypeReg && !strings.Contains(control["./md5sums"], fmt.Sprintf("%x  %s\n", md5.Sum([]byte(data[h.Name])), strings.TrimPrefix(h.Name, "./"))) {
			t.Errorf("no sum of %s", h.Name)
		}
	}
	for name, want := range map[string]string{
		"usr/bin/codemode-bridge": "bridge", "usr/bin/codemode-worker": "worker", "usr/share/zsh/vendor-completions/_codemode-bridge": "z",
		"usr/share/bash-completion/completions/codemode-bridge": "b", "usr/share/fish/vendor_completions.d/codemode-bridge.fish": "f", "usr/share/man/man1/codemode-bridge.1.gz": "man",
		"usr/share/doc/codemode-bridge/copyright": "the licence", "usr/share/doc/codemode-bridge/THIRD_PARTY_NOTICES": "theirs",
		"usr/share/doc/codemode-bridge/docs/install.md": "install", "usr/lib/systemd/system/codemode-bridge.service": "[Unit]",
	} {
		if data["./"+name] != want {
			t.Errorf("%s is %q, want %q", name, data["./"+name], want)
		}
	}

	again, err := testRelease.linuxPackages(p, testShared, testPrograms, testPapers)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if !bytes.Equal(files[name], again[name]) {
			t.Errorf("%s: made again, it is other bytes", name)
		}
	}
	if rpm := files["codemode-bridge_1.2.3-rc.1_linux_arm64.rpm"]; !bytes.HasPrefix(rpm, []byte{0xed, 0xab, 0xee, 0xdb}) || !bytes.Contains(rpm, []byte("\x00aarch64\x00")) {
		t.Errorf("the rpm begins with %x", rpm[:4])
	}
}

// A packaged service starts the program that is in the package, as a user that the package
// describes.
func TestUnits(t *testing.T) {
	units, err := (&release{root: filepath.Join("..", "..")}).units()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, u := range units {
		texts[u.name] = string(u.text)
	}
	service, user := texts["usr/lib/systemd/system/codemode-bridge.service"], texts["usr/lib/sysusers.d/codemode-bridge.conf"]
	if len(texts) != 4 || !strings.Contains(service, "\nExecStart=/usr/bin/codemode-bridge serve ") || !strings.Contains(service, "\nUser=codemode-bridge\n") || !strings.Contains(user, "\nu codemode-bridge ") {
		t.Errorf("%v\n%s\n%s", slices.Sorted(maps.Keys(texts)), service, user)
	}
	for _, bad := range []string{"[Service]\nExecStart=/opt/codemode-bridge serve\n", "[Service]\nExecStart=/usr/local/bin/a\nExecStart=/opt/b\n"} {
		if text, err := packaged("x.service", []byte(bad)); err == nil {
			t.Errorf("%q is packaged as %q", bad, text)
		}
	}
}

func TestSortable(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3~rc.1", "1.2.3-a-b": "1.2.3~a.b"} {
		if got := sortable(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// The bundle's manifest starts the program that is in it, which can be executed.
func TestBundle(t *testing.T) {
	text, err := testRelease.bundled(platform{"darwin", "arm64"}, testPrograms, testPapers)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m bundle
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3-rc.1" || m.Server.Config.Command != "${__dirname}/"+m.Server.Entry || !slices.Equal(m.Compatibility.Platforms, []string{"darwin"}) {
		t.Errorf("%+v", m)
	}
	modes := map[string]os.FileMode{}
	for _, f := range z.File {
		modes[f.Name] = f.Mode()
	}
	if modes[m.Server.Entry] != 0o755 || modes["server/codemode-worker"] != 0o755 {
		t.Errorf("the modes are %v", modes)
	}
}

// The entry for the registry has the checksum and the address of each bundle, and the name
// that the npm package says it has.
func TestServerEntry(t *testing.T) {
	text, err := testRelease.serverEntry(map[string][]byte{"a.mcpb": []byte("bundle"), "a.deb": nil})
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Name, Description, Version string
		Packages                   []struct{ RegistryType, Identifier, Version, FileSha256 string }
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(e.Name) || len(e.Description) > 100 || e.Version != "1.2.3-rc.1" || len(e.Packages) != 2 {
		t.Errorf("%+v", e)
	}
	if b := e.Packages[1]; b.Identifier != "https://github.com/acme/bridge/releases/download/v1.2.3-rc.1/a.mcpb" || b.FileSha256 != digest([]byte("bundle")) || b.Version != "" {
		t.Errorf("%+v", b)
	}
	_, npm, err := testRelease.mainPackage(nil)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal([]byte(filesIn(t, npm)["package/package.json"]), &m); err != nil {
		t.Fatal(err)
	}
	if m.MCPName != e.Name || m.Repository.URL != "git+https://github.com/acme/bridge.git" {
		t.Errorf("the npm package says %q, %+v", m.MCPName, m.Repository)
	}
	for address, want := range map[string]string{
		"https://gitlab.com/acme/bridge.git": "io.gitlab.acme/codemode-bridge", "http://github.com/a/b": "", "https://github.com/a": "", "https://github.com/a/b/c": "", "https://example.com/a/b": "", "": "",
	} {
		if got := registryName(address); got != want {
			t.Errorf("%q is called %q, want %q", address, got, want)
		}
	}
}

// The bill of materials has every module that a program links, each reference once, and
// nothing in it depends on what is not there.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := testRelease.materials(platform{"linux", "amd64"}, []entry{{"codemode-bridge", 0o755, program}})
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		if refs[c.Ref] {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref] = true
	}
	for _, d := range b.Dependencies {
		for _, on := range d.On {
			if !refs[d.Ref] || !refs[on] {
				t.Errorf("%s depends on %s", d.Ref, on)
			}
		}
	}
	i := slices.IndexFunc(b.Components, func(c component) bool { return c.Name == "github.com/google/rpmpack" })
	if i < 0 || len(b.Components[i].Properties) != 1 || !strings.HasPrefix(b.Components[i].Properties[0].Value, "h1:") {
		t.Errorf("rpmpack, which this test links, is in it as %d", i)
	}
	again, err := testRelease.materials(platform{"linux", "amd64"}, []entry{{"codemode-bridge", 0o755, program}})
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("made again, it is other bytes (%v)", err)
	}
}

// The statement has the checksum of every file, and says that it was not signed.
func TestProvenance(t *testing.T) {
	text, err := testRelease.provenance(map[string][]byte{"b": []byte("2"), "a": []byte("1")}, []platform{{"linux", "amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				InternalParameters   struct{ Signed *bool }
				ResolvedDependencies []struct{ URI string }
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	d := s.Predicate.BuildDefinition
	if s.Type != "https://in-toto.io/Statement/v1" || len(s.Subject) != 2 || s.Subject[1].Name != "b" || s.Subject[1].Digest["sha256"] != digest([]byte("2")) ||
		d.InternalParameters.Signed == nil || *d.InternalParameters.Signed || d.ResolvedDependencies[0].URI != "git+https://github.com/acme/bridge@abc" {
		t.Errorf("%s", text)
	}
}

// The manual page has every command of the reference, in what troff takes for text.
func TestManualPage(t *testing.T) {
	r := &release{version: "1.2.3", time: commitTime, root: filepath.Join("..", "..")}
	page, err := r.manualPage()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH CODEMODE-BRIDGE 1 \"2023-11-14\"", "\n.TP\n.B servers add NAME URL\n", "\n.SH EXIT STATUS\n.TP\n.B 0\n", "CODEMODE_CONFIG"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for i, line := range strings.Split(string(page), "\n") {
		if strings.Contains(line, "](") || strings.Contains(line, "`") || strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|TP|B|PP)( |$)`).MatchString(line) {
			t.Errorf("line %d: %.80q", i+1, line)
		}
	}
}
