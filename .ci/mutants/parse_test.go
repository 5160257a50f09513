package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const entry = `A comment.

## deny-skipped: a denied call is sent
file: bridge/gate/gate.go
test: ./bridge/gate -run 'TestDeny|Test Two'
--- old
	if denied {
		return err
	}
--- new
--- end
`

func TestParseFaults(t *testing.T) {
	got, err := parseFaults(entry)
	if err != nil {
		t.Fatal(err)
	}
	want := []fault{{
		name: "deny-skipped",
		file: "bridge/gate/gate.go",
		test: []string{"./bridge/gate", "-run", "TestDeny|Test Two"},
		old:  "\tif denied {\n\t\treturn err\n\t}",
		line: 3,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(fault{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for what, change := range map[string][2]string{
		"a path outside the tree": {"bridge/gate/gate.go", "../gate.go"},
		"no test":                 {"test: ./bridge/gate -run 'TestDeny|Test Two'\n", ""},
		"an open quote":           {"Two'", "Two"},
		"no end":                  {"--- end\n", ""},
		"an unknown key":          {"file: ", "fill: "},
		"no words":                {"deny-skipped: ", "deny-skipped "},
	} {
		text := strings.Replace(entry, change[0], change[1], 1)
		if _, err := parseFaults(text); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	one := entry[strings.Index(entry, "##"):]
	if _, err := parseFaults(entry + one); err == nil {
		t.Error("the same name twice: accepted")
	}
	another := strings.Replace(one, "deny-skipped", "deny-sent", 1)
	if got, err := parseFaults(entry + another); err != nil || len(got) != 2 {
		t.Errorf("two entries: %d, %v", len(got), err)
	}
	if _, err := parseFaults(strings.TrimSuffix(entry, "--- end\n") + another); err == nil {
		t.Error("an entry that takes up the next one: accepted")
	}
}

// TestFaultsText keeps the list itself true while it, or the code that it
// names, is edited: an entry whose old text is gone would seed nothing, and one
// that runs all tests of a large package would take too long.
func TestFaultsText(t *testing.T) {
	faults, err := parseFaults(faultsText)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if wide := f.test[0] == "./bridge" || f.test[0] == "./cmd/codemode-bridge"; wide && !slices.Contains(f.test, "-run") {
			t.Errorf("faults.txt:%d: %s: the tests of %s take long: name some with -run", f.line, f.name, f.test[0])
		}
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(f.file)))
		if err != nil {
			t.Errorf("faults.txt:%d: %s: %v", f.line, f.name, err)
			continue
		}
		if n := strings.Count(string(text), f.old); n != 1 {
			t.Errorf("faults.txt:%d: %s: the old text stands %d times in %s, not once", f.line, f.name, n, f.file)
		}
	}
}

func TestTestsFailed(t *testing.T) {
	for out, want := range map[string]bool{
		"--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tcodemode-bridge/x\t0.1s\n": true,
		"FAIL\tcodemode-bridge/x [build failed]\nFAIL\n":                 false,
		"ok  \tcodemode-bridge/x\t0.1s\n":                                false,
	} {
		if got := testsFailed(out); got != want {
			t.Errorf("testsFailed(%q) = %v, want %v", out, got, want)
		}
	}
}

func TestTestsRan(t *testing.T) {
	for out, want := range map[string]bool{
		"ok  \tcodemode-bridge/x\t0.1s\n":                   true,
		"ok  \tcodemode-bridge/x\t0.1s [no tests to run]\n": false,
		"?   \tcodemode-bridge/x\t[no test files]\n":        false,
		"?   \tx\t[no test files]\nok  \ty\t0.1s\n":         true,
	} {
		if got := testsRan(out); got != want {
			t.Errorf("testsRan(%q) = %v, want %v", out, got, want)
		}
	}
}
