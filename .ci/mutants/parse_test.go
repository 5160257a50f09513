package main

import (
	"reflect"
	"strings"
	"testing"
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
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
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
	if _, err := parseFaults(entry + entry[strings.Index(entry, "##"):]); err == nil {
		t.Error("the same name twice: accepted")
	}
}

// TestFaultsText keeps the list itself readable while it is edited.
func TestFaultsText(t *testing.T) {
	if _, err := parseFaults(faultsText); err != nil {
		t.Error(err)
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
