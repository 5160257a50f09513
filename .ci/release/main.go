// Command release makes what a release of codemode-bridge consists of:
//
//	go run ./.ci/release -version 1.2.3 -out dist
//
//	codemode-bridge_1.2.3_linux_amd64.tar.gz ...  both programs, for each system (.zip for Windows)
//	codemode-bridge-1.2.3.tgz                     the npm package that people name: a launcher
//	codemode-bridge-linux-x64-1.2.3.tgz ...       the npm packages with the programs, @codemode-bridge/linux-x64
//	codemode-bridge_1.2.3_linux_amd64.deb, .rpm   packages for Linux: programs, completions, manual page, documents
//	codemode-bridge-1.2.3-oci-amd64.tar ...       an image for container engines, for each processor of Linux
//	codemode-bridge_1.2.3_darwin_arm64.mcpb ...   bundles for desktop clients
//	codemode-bridge_1.2.3_linux_amd64.cdx.json .. what the programs are made of (CycloneDX)
//	codemode-bridge_1.2.3.provenance.json         what was built from what (in-toto, SLSA), unsigned
//	server.json                                   the entry for the MCP registry, if -repository is given
//	SHA256SUMS                                    of all of these, as sha256sum -c reads it
//
// The same commit, version and Go make the same bytes, in whatever folder and on
// whatever system: entries are sorted, belong to nobody, and have one time, that of
// the commit, or SOURCE_DATE_EPOCH. Nothing is fetched but the modules that a build
// needs, and nothing is published.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A platform is a system and a processor, as Go names them.
type platform struct{ os, arch string }

// platforms are those that a release has programs for.
var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// npm is the platform as Node names it, which is also the name of its package.
func (p platform) npm() (os, cpu string) {
	os, cpu = p.os, p.arch
	if os == "windows" {
		os = "win32"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	return os, cpu
}

// A release is what is being made.
type release struct {
	version string
	commit  string // empty if it is not known
	time    time.Time
	root    string // of the repository
	out     string
	// repository is where the files will be, as https://github.com/OWNER/NAME; empty if
	// that was not said.
	repository string
	docs       string   // where the documents are as pages; empty if that was not said
	formats    []string // what is made, of formats
}

// formats are the kinds of files that a release has; checksums are of all.
var formats = []string{"archive", "npm", "packages", "oci", "mcpb", "about"}

func (r *release) makes(format string) bool { return slices.Contains(r.formats, format) }

func main() {
	version := flag.String("version", "", "the `version`, as 1.2.3 or 1.2.3-rc.1")
	out := flag.String("out", "dist", "the `folder` that gets the files; it must be empty, or not there")
	commit := flag.String("commit", "", "the `commit` that is built (default: the one that git has checked out)")
	only := flag.String("platforms", "", "build only these `platforms`, as linux/amd64,darwin/arm64: to try, not to publish")
	repository := flag.String("repository", "", "where the release will be published, as `https://github.com/OWNER/NAME`: makes server.json, and is named in the packages")
	kinds := flag.String("formats", strings.Join(formats, ","), "make only these `formats`: packages are deb and rpm, oci the images, about is what says what is in the others")
	docs := flag.String("docs", "", "the `address` at which the documents are as pages (make pages), which help and errors then name")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(2, fmt.Errorf("there are no arguments but flags: %q", flag.Args()))
	}
	some, err := choose(*only)
	if err != nil {
		fail(2, err)
	}
	r, err := begin(*version, *commit, *out)
	if err != nil {
		fail(2, err)
	}
	if *repository != "" && registryName(*repository) == "" {
		fail(2, fmt.Errorf("-repository %q: want https://github.com/OWNER/NAME or https://gitlab.com/OWNER/NAME, whose releases the MCP registry takes", *repository))
	}
	if r.docs = *docs; r.docs != "" && !strings.HasPrefix(r.docs, "https://") || strings.ContainsAny(r.docs, " '\"") {
		fail(2, fmt.Errorf("-docs %q: want an address that begins with https://", r.docs))
	}
	r.formats = strings.Split(*kinds, ",")
	for _, format := range r.formats {
		if !slices.Contains(formats, format) {
			fail(2, fmt.Errorf("there is no format %q; there are %s", format, strings.Join(formats, ", ")))
		}
	}
	r.repository = strings.TrimSuffix(*repository, ".git")
	if err := r.make(some); err != nil {
		fail(1, err)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(code)
}

// choose returns the platforms of a list; all for an empty one.
func choose(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var some []platform
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no platform %q; there are %v", name, platforms)
		}
		some = append(some, platforms[i])
	}
	return some, nil
}

// semantic is what npm takes for a version, without build metadata, which it drops.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)

// begin finds out what is to be built, from git where it isn't said.
func begin(version, commit, out string) (*release, error) {
	if !semantic.MatchString(version) {
		return nil, fmt.Errorf("version %q is none: want one such as 1.2.3 or 1.2.3-rc.1 (make release VERSION=1.2.3)", version)
	}
	r := &release{version: version, commit: commit}
	var err error
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: remove it, so that no file of another release stays in it", r.out)
	}
	module, err := output("", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	r.root = filepath.Dir(module)
	if commit == "" {
		if r.commit, err = output(r.root, "git", "rev-parse", "HEAD"); err != nil {
			return nil, fmt.Errorf("%w; without git, say -commit and set SOURCE_DATE_EPOCH", err)
		}
		changed, err := output(r.root, "git", "status", "--porcelain")
		if err != nil {
			return nil, err
		}
		if changed != "" {
			r.commit += "-modified"
			fmt.Fprintln(os.Stderr, "release: some files here differ from their commit; the programs will say so: do not publish them")
		}
	}
	seconds, said := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !said {
		if seconds, err = output(r.root, "git", "log", "-1", "--format=%ct"); err != nil {
			return nil, fmt.Errorf("%w; without git, set SOURCE_DATE_EPOCH to the time of the commit, in seconds", err)
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 315532800 { // 1980, where the time of a zip begins
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is %q: want seconds since 1970, of 1980 or later", seconds)
	}
	r.time = time.Unix(n&^1, 0).UTC() // a zip counts in steps of two seconds
	return r, nil
}

// make builds and packs, and writes the files.
func (r *release) make(some []platform) error {
	paper, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	if r.makes("npm") {
		file, text, err := r.mainPackage(paper)
		if err != nil {
			return err
		}
		files[file] = text
	}
	var common *shared
	if r.makes("packages") {
		if common, err = r.sharedFiles(); err != nil {
			return err
		}
	}

	// Linking and packing use one processor each.
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex // guards files and failed
		failed error
		room   = make(chan struct{}, 2)
	)
	for _, p := range some {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			fmt.Fprintln(os.Stderr, "release:", p)
			made, err := r.forPlatform(p, paper, common)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(files, made)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	if r.makes("about") && r.repository != "" {
		if files["server.json"], err = r.serverEntry(files); err != nil {
			return err
		}
	}
	if r.makes("about") {
		statement, err := r.provenance(files, some)
		if err != nil {
			return err
		}
		files["codemode-bridge_"+r.version+".provenance.json"] = statement
	}
	return r.write(files)
}

// forPlatform makes all files for one platform.
func (r *release) forPlatform(p platform, paper []byte, s *shared) (map[string][]byte, error) {
	programs, err := r.build(p)
	if err != nil {
		return nil, err
	}
	notices, err := r.notices(p)
	if err != nil {
		return nil, err
	}
	papers := []entry{{"LICENSE", 0o644, paper}, {"README.md", 0o644, r.readme()}, {"THIRD_PARTY_NOTICES", 0o644, notices}}
	name := fmt.Sprintf("codemode-bridge_%s_%s_%s", r.version, p.os, p.arch)
	files := map[string][]byte{}
	if r.makes("archive") {
		pack, end := tarred, ".tar.gz"
		if p.os == "windows" {
			pack, end = zipped, ".zip"
		}
		if files[name+end], err = pack(beneath(name+"/", slices.Concat(programs, papers)), r.time); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if r.makes("npm") {
		file, text, err := r.platformPackage(p, programs, papers)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", file, err)
		}
		files[file] = text
	}
	if r.makes("mcpb") {
		if files[name+".mcpb"], err = r.bundled(p, programs, papers); err != nil {
			return nil, fmt.Errorf("packing %s.mcpb: %w", name, err)
		}
	}
	if r.makes("about") {
		if files[name+".cdx.json"], err = r.materials(p, programs); err != nil {
			return nil, err
		}
	}
	if r.makes("packages") && p.os == "linux" {
		packages, err := r.linuxPackages(p, s, programs, papers)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, packages)
	}
	if r.makes("oci") && p.os == "linux" {
		name, text, err := r.image(p, programs, papers)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}

// write writes the files and their checksums.
func (r *release) write(files map[string][]byte) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, name := range sorted(files) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
		if err := os.WriteFile(filepath.Join(r.out, name), files[name], 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Print(sums.String())
	return nil
}

// output runs a program in a folder and returns what it prints, without the end of
// the line.
func output(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
	}
	return strings.TrimRight(string(out), "\r\n"), nil
}
