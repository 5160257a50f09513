package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/rpmpack"
)

// What a package for Linux says of itself.
const (
	summary     = "MCP server in front of many, with one code tool and a policy"
	description = `A model gets one code tool instead of the tool definitions of all MCP servers,
and every call that its scripts make passes a policy that allows it, denies it,
or asks a person. Everything is recorded.`
)

// shared is what a release has for every platform: the shells' completions, the manual
// page and the documents. It is made once.
type shared struct {
	completions map[string][]byte // by shell: bash, zsh, fish
	manual      []byte            // codemode-bridge(1), compressed
	documents   []entry           // below the folder of documents
	units       []entry           // of systemd, and their user, below the root
}

// sharedFiles runs the program of this machine for what only it knows, and reads the
// rest from the repository.
func (r *release) sharedFiles() (*shared, error) {
	into, err := os.MkdirTemp("", "release-host-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(into)
	program := filepath.Join(into, "codemode-bridge")
	cmd := exec.Command("go", "build", "-o", program, programs[0])
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the program that writes completions: %w\n%s", err, out)
	}
	s := &shared{completions: map[string][]byte{}}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("writing the completion for %s: %w", shell, err)
		}
		s.completions[shell] = out
	}
	page, err := r.manualPage()
	if err != nil {
		return nil, err
	}
	if s.manual, err = gzipped(page); err != nil {
		return nil, err
	}
	if s.documents, err = r.documents(); err != nil {
		return nil, err
	}
	if s.units, err = r.units(); err != nil {
		return nil, err
	}
	pages, err := r.pages(filepath.Join(into, "html"))
	s.documents = append(s.documents, pages...)
	return s, err
}

// pages are the documents as HTML, made in a folder.
func (r *release) pages(into string) ([]entry, error) {
	if _, err := output(r.root, "go", "run", "./.ci/pages", "-out", into); err != nil {
		return nil, err
	}
	return below(into, "html/")
}

// below are the files of a folder.
func below(top, prefix string) (all []entry, err error) {
	err = filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) == ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, file)
		all = append(all, entry{prefix + filepath.ToSlash(name), 0o644, text})
		return err
	})
	return all, err
}

// documents are the README, docs and what they link to, as the repository has them.
func (r *release) documents() ([]entry, error) {
	var all []entry
	for _, name := range []string{"README.md", "CHANGELOG.md", "config.example.json"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, 0o644, text})
	}
	docs, err := below(filepath.Join(r.root, "docs"), "docs/")
	return append(all, docs...), err
}

// units are the units of docs/deploy/systemd and the user of the service, below the root,
// where systemd finds them; nothing starts or enables them.
func (r *release) units() ([]entry, error) {
	files, err := filepath.Glob(filepath.Join(r.root, "docs", "deploy", "systemd", "*"))
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		switch filepath.Ext(name) {
		case ".service":
			if text, err = packaged(name, text); err != nil {
				return nil, err
			}
			fallthrough
		case ".socket":
			all = append(all, entry{"usr/lib/systemd/system/" + name, 0o644, text})
		case ".conf":
			all = append(all, entry{"usr/lib/sysusers.d/" + name, 0o644, text})
		default:
			return nil, fmt.Errorf("%s: no package has a place for it", file)
		}
	}
	return all, nil
}

// packaged is a service that starts the program where packages put it, and not where
// administrators do.
func packaged(name string, service []byte) ([]byte, error) {
	const ours, theirs = "\nExecStart=/usr/local/bin/", "\nExecStart=/usr/bin/"
	if bytes.Count(service, []byte("\nExecStart=")) != 1 || !bytes.Contains(service, []byte(ours)) {
		return nil, fmt.Errorf("%s does not start one program of /usr/local/bin", name)
	}
	return bytes.Replace(service, []byte(ours), []byte(theirs), 1), nil
}

// installed are the files that a package for Linux puts on a machine, below the root.
func installed(s *shared, programs, papers []entry, zsh string) []entry {
	all := slices.Concat(
		beneath("usr/bin/", programs),
		beneath("usr/share/doc/codemode-bridge/", s.documents),
		s.units,
		[]entry{
			{"usr/share/bash-completion/completions/codemode-bridge", 0o644, s.completions["bash"]},
			{zsh + "/_codemode-bridge", 0o644, s.completions["zsh"]},
			{"usr/share/fish/vendor_completions.d/codemode-bridge.fish", 0o644, s.completions["fish"]},
			{"usr/share/man/man1/codemode-bridge.1.gz", 0o644, s.manual},
		})
	for _, p := range papers {
		if p.name != "README.md" { // it is an archive's: the documents have another
			all = append(all, entry{"usr/share/doc/codemode-bridge/" + p.name, p.mode, p.text})
		}
	}
	return all
}

// sortable is a version as dpkg and rpm compare it: a release candidate comes before
// its release.
func sortable(version string) string {
	number, candidate, found := strings.Cut(version, "-")
	if !found {
		return number
	}
	return number + "~" + strings.ReplaceAll(candidate, "-", ".")
}

// folders are the folders of entries, each above those in it.
func folders(entries []entry) []string {
	all := map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			all[dir] = true
		}
	}
	return sorted(all)
}

// deb is a package for Debian and what is like it: an ar archive with two tar archives,
// as deb(5) has it. It has no scripts: nothing runs when it is installed or removed.
func (r *release) deb(p platform, files []entry) ([]byte, error) {
	var sums bytes.Buffer
	size := 0
	for _, e := range inOrder(files) {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.text), e.name)
		size += len(e.text)
	}
	control := fmt.Sprintf(`Package: codemode-bridge
Version: %s
Architecture: %s
Maintainer: codemode-bridge <codemode-bridge@localhost>
Installed-Size: %d
Section: utils
Priority: optional
Description: %s
 %s
`, sortable(r.version), p.arch, (size+1023)/1024, summary, strings.ReplaceAll(description, "\n", "\n "))

	about, err := tarred([]entry{{"./control", 0o644, []byte(control)}, {"./md5sums", 0o644, sums.Bytes()}}, r.time)
	if err != nil {
		return nil, err
	}
	data := beneath("./", files)
	for _, dir := range folders(files) {
		data = append(data, entry{name: "./" + dir + "/", mode: fs.ModeDir | 0o755})
	}
	payload, err := tarred(data, r.time)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, part := range []entry{{"debian-binary", 0o644, []byte("2.0\n")}, {"control.tar.gz", 0o644, about}, {"data.tar.gz", 0o644, payload}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", part.name, r.time.Unix(), 0, 0, 0o100000|part.mode, len(part.text))
		out.Write(part.text)
		if len(part.text)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}

// rpmArch is a processor as rpm names it.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpm is a package for Fedora and what is like it, without scripts as well.
func (r *release) rpm(p platform, files []entry) ([]byte, error) {
	pack, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "codemode-bridge", Version: sortable(r.version), Release: "1", Arch: rpmArch[p.arch], OS: "linux",
		Summary: summary, Description: description, Licence: license, BuildHost: "localhost", BuildTime: r.time, Compressor: "gzip", Epoch: rpmpack.NoEpoch,
	})
	if err != nil {
		return nil, err
	}
	add := func(name string, mode uint, kind rpmpack.FileType, text []byte) {
		pack.AddFile(rpmpack.RPMFile{Name: "/" + name, Body: text, Mode: mode, Owner: "root", Group: "root", MTime: uint32(r.time.Unix()), Type: kind})
	}
	const documents = "usr/share/doc/codemode-bridge"
	for _, dir := range folders(files) {
		if dir == documents || strings.HasPrefix(dir, documents+"/") { // the others are other packages'
			add(dir, 0o40755, rpmpack.GenericFile, nil)
		}
	}
	for _, e := range slices.SortedFunc(slices.Values(files), func(a, b entry) int { return cmp.Compare(a.name, b.name) }) {
		kind := rpmpack.FileType(rpmpack.GenericFile)
		switch {
		case path.Base(e.name) == "LICENSE":
			kind = rpmpack.LicenceFile
		case strings.HasPrefix(e.name, documents+"/"), strings.HasPrefix(e.name, "usr/share/man/"):
			kind = rpmpack.DocFile
		}
		add(e.name, uint(e.mode.Perm()), kind, e.text)
	}
	var out bytes.Buffer
	if err := pack.Write(&out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// linuxPackages are the packages for Linux.
func (r *release) linuxPackages(p platform, s *shared, programs, papers []entry) (map[string][]byte, error) {
	name := fmt.Sprintf("codemode-bridge_%s_%s_%s", r.version, p.os, p.arch)
	// Debian has its packages' completions for zsh elsewhere than the others, and wants
	// licences in a file called copyright.
	forDebian := installed(s, programs, papers, "usr/share/zsh/vendor-completions")
	for i := range forDebian {
		if path.Base(forDebian[i].name) == "LICENSE" {
			forDebian[i].name = path.Join(path.Dir(forDebian[i].name), "copyright")
		}
	}
	deb, err := r.deb(p, forDebian)
	if err != nil {
		return nil, fmt.Errorf("packing %s.deb: %w", name, err)
	}
	rpm, err := r.rpm(p, installed(s, programs, papers, "usr/share/zsh/site-functions"))
	if err != nil {
		return nil, fmt.Errorf("packing %s.rpm: %w", name, err)
	}
	return map[string][]byte{name + ".deb": deb, name + ".rpm": rpm}, nil
}

// gzipped is text, compressed, without a name and a time.
func gzipped(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
