// Command release makes what a release of codemode-bridge consists of:
//
//	go run ./.ci/release -version 1.2.3 -out dist
//
//	codemode-bridge_1.2.3_linux_amd64.tar.gz ...  both programs, for each system (.zip for Windows)
//	codemode-bridge-1.2.3.tgz                     the npm package that people name: a launcher
//	codemode-bridge-linux-x64-1.2.3.tgz ...       the npm packages with the programs, @codemode-bridge/linux-x64
//	codemode-bridge-1.2.3-oci-amd64.tar ...       an image for container engines, for each processor of Linux
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
}

func main() {
	version := flag.String("version", "", "the `version`, as 1.2.3 or 1.2.3-rc.1")
	out := flag.String("out", "dist", "the `folder` that gets the files; it must be empty, or not there")
	commit := flag.String("commit", "", "the `commit` that is built (default: the one that git has checked out)")
	only := flag.String("platforms", "", "build only these `platforms`, as linux/amd64,darwin/arm64: to try, not to publish")
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
	file, text, err := r.mainPackage(paper)
	if err != nil {
		return err
	}
	files[file] = text

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
			made, err := r.forPlatform(p, paper)
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
	return r.write(files)
}

// forPlatform makes the archive and the npm package for one platform.
func (r *release) forPlatform(p platform, paper []byte) (map[string][]byte, error) {
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
	pack, end := tarred, ".tar.gz"
	if p.os == "windows" {
		pack, end = zipped, ".zip"
	}
	archive, err := pack(beneath(name+"/", slices.Concat(programs, papers)), r.time)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	file, text, err := r.platformPackage(p, programs, papers)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", file, err)
	}
	files := map[string][]byte{name + end: archive, file: text}
	if p.os == "linux" {
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
