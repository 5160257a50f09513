package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the packages that are built; their last elements are the names of the
// programs.
var programs = []string{"./cmd/codemode-bridge", "./cmd/codemode-worker"}

// environment is what the go command gets, so that nothing that is set here decides
// what is built.
func environment(p platform) []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off", "GOWORK=off")
}

// build builds both programs for a platform.
func (r *release) build(p platform) ([]entry, error) {
	into, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(into)
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", r.version, r.commit)
	if r.docs != "" {
		flags += " -X main.docs=" + r.docs
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-ldflags", flags, "-o", into + string(filepath.Separator)}, programs)...)
	cmd.Dir, cmd.Env = r.root, environment(p)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}
	var all []entry
	for _, program := range programs {
		name := filepath.Base(program)
		if p.os == "windows" {
			name += ".exe"
		}
		text, err := os.ReadFile(filepath.Join(into, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, 0o755, text})
	}
	return all, nil
}

// paper matches the names of files with a licence, or what it wants to be passed on.
var paper = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|copyright|notice|patents|[a-z]+-licen[cs]e)([-._].*)?$`)

// notices are the licences of everything that the programs of a platform link: Go's
// own, and for each module those at its top and beside or above the packages that are
// used. A module without a licence is an error.
func (r *release) notices(p platform) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not (or .Main (and .Replace (not .Replace.Version)))}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"}, programs...)...)
	cmd.Dir, cmd.Env = r.root, environment(p)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing what the programs for %s link: %w", p, err)
	}
	goroot, err := output(r.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goversion, err := output(r.root, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // by module and version: texts by path
	lines := append(strings.Split(strings.TrimSpace(string(out)), "\n"), strings.Join([]string{"Go " + goversion, goroot, goroot}, "\t"))
	for _, line := range lines {
		parts := strings.Split(strings.TrimRight(line, "\r"), "\t")
		if len(parts) != 3 {
			continue // a package of the standard library, or of ours
		}
		module, top, folder := parts[0], parts[1], parts[2]
		if found[module] == nil {
			found[module] = map[string]string{}
		}
		if err := papersOf(top, folder, found[module]); err != nil {
			return nil, fmt.Errorf("reading the licence of %s: %w", module, err)
		}
	}
	var text strings.Builder
	text.WriteString("The programs codemode-bridge and codemode-worker link what is listed here, each under its own terms.\n")
	for _, module := range sorted(found) {
		if len(found[module]) == 0 {
			return nil, fmt.Errorf("%s has no file with a licence: look for it, and teach .ci/release its name", module)
		}
		for _, name := range sorted(found[module]) {
			fmt.Fprintf(&text, "\n%[1]s\n%[2]s: %[3]s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 80), module, name, strings.TrimSpace(found[module][name]))
		}
	}
	return []byte(text.String()), nil
}

// papersOf reads the papers in folder and those above it, up to top.
func papersOf(top, folder string, into map[string]string) error {
	for {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !paper.MatchString(e.Name()) || !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			path := filepath.Join(folder, e.Name())
			name, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			into[filepath.ToSlash(name)] = strings.ReplaceAll(string(text), "\r\n", "\n")
		}
		above := filepath.Dir(folder)
		if folder == top || above == folder {
			return nil
		}
		folder = above
	}
}
