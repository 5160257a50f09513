//go:build real

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRealConformance runs the official conformance suite against the HTTP server, for
// each of the two revisions of the protocol. A check that fails must be listed, with the
// reason, in testdata/real/conformance/baseline.txt, and what is listed there must fail.
func TestRealConformance(t *testing.T) {
	r := newReal(t)
	url := r.serve(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			known := readBaseline(t, revision)
			passed := 0
			for _, c := range r.conformance(t, url, revision) {
				expected := false
				for i := range known {
					if known[i].covers(c) && c.Status == "FAILURE" {
						known[i].met, expected = true, true
					}
				}
				switch {
				case c.Status == "SUCCESS":
					passed++
				case c.Status == "FAILURE" && !expected:
					t.Errorf("%s, %s: %s", c.scenario, c.ID, c.ErrorMessage)
				}
			}
			for _, k := range known {
				if !k.met {
					t.Errorf("the baseline says that %s %s fails, and it does not", k.scenario, k.check)
				}
			}
			if passed < 40 { // when this was written, 45 and 106 did
				t.Errorf("only %d checks passed: did the suite run?", passed)
			}
		})
	}
}

// A conformanceCheck is one result of the suite.
type conformanceCheck struct {
	scenario     string
	ID, Status   string
	ErrorMessage string
}

// conformance runs the scenarios that a revision of the protocol requires and
// returns all their checks.
func (r *real) conformance(t *testing.T, url, revision string) []conformanceCheck {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "node_modules/@modelcontextprotocol/conformance/dist/index.js",
		"server", "--url", url, "--requirements", revision, "--output-dir", out)
	cmd.Dir = filepath.Join(r.npm, "conformance")
	cmd.Env = r.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// The exit status only counts failures, which are judged here. A suite that did not
	// run to its end prints no total.
	err := cmd.Run()
	if !strings.Contains(said.String(), "\nTotal: ") {
		t.Fatalf("the suite ended with %v and said\n%s", err, said.String())
	}

	var all []conformanceCheck
	files, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: %v", err)
	}
	folder := regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)
	for _, file := range files {
		name := folder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if name == nil {
			t.Fatalf("results in %s, which names no scenario", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []conformanceCheck
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range checks {
			c.scenario = name[1]
			all = append(all, c)
		}
	}
	return all
}

// A knownFailure is a line of the baseline.
type knownFailure struct {
	scenario, check string // patterns
	met             bool
}

func (k knownFailure) covers(c conformanceCheck) bool {
	scenario, err1 := path.Match(k.scenario, c.scenario)
	check, err2 := path.Match(k.check, c.ID)
	return err1 == nil && err2 == nil && scenario && check
}

// readBaseline reads the failures that are expected for a revision.
func readBaseline(t *testing.T, revision string) []knownFailure {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "real", "conformance", "baseline.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var known []knownFailure
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "20") {
			continue
		}
		what, why, _ := strings.Cut(line, " # ")
		words := strings.Fields(what)
		if len(words) != 3 || strings.TrimSpace(why) == "" {
			t.Fatalf("baseline.txt:%d: want a revision, a scenario, a check and a reason: %s", i+1, line)
		}
		if words[0] == revision {
			known = append(known, knownFailure{scenario: words[1], check: words[2]})
		}
	}
	return known
}
