package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestMain(m *testing.M) {
	if asNpx() {
		if err := serveNpx(); err != nil {
			fmt.Fprintln(os.Stderr, "npx:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	theSessions = "sessions"
	theLists    = "../../../profiles/known/testdata/lists"
)

// built builds the bridge and returns a harness that plays it.
func built(t *testing.T) *harness {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "codemode-bridge")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", dir+string(filepath.Separator), "codemode-bridge/cmd/codemode-bridge", "codemode-bridge/cmd/codemode-worker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h, err := newHarness(name, theLists, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Every session can be played: its servers list what it calls, and it is as long as an
// ordinary session.
func TestSessions(t *testing.T) {
	all, err := sessions(theSessions)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := lists(theLists)
	if err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for _, s := range all {
		if n := s.count(); n < 25 || n > 40 || len(s.Twins) < 12 {
			t.Errorf("%s: %d calls, %d twins", s.Name, n, len(s.Twins))
		}
		if fitting[s.Name] == "" {
			t.Errorf("%s: no template is said to fit", s.Name)
		}
		placed, err := s.in("/w", "/o")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := placed.playbook("log", listed); err != nil {
			t.Error(err)
		}
		for _, c := range placed.allCalls() {
			name, tool := c.split()
			text, err := os.ReadFile(listed[s.Servers[name].List])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), fmt.Sprintf("\"name\": %q", tool)) {
				unknown = append(unknown, c.Tool)
			}
			if args := string(c.Args); strings.Contains(args, "${WORKSPACE}") || strings.Contains(args, "${OUTSIDE}") {
				t.Errorf("%s: a folder is not named in %s", s.Name, c.Args)
			}
		}
	}
	if diff := cmp.Diff([]string(nil), unknown); diff != "" {
		t.Errorf("tools that no server lists (-want +got):\n%s", diff)
	}
}

func TestChoose(t *testing.T) {
	enum := func(values ...any) *mcp.ElicitParams {
		return &mcp.ElicitParams{Message: "WRITE FILE?\n\nCertain.", RequestedSchema: map[string]any{"properties": map[string]any{
			"decision": map[string]any{"enum": values}, "count": map[string]any{"enum": []any{"20", "100"}}}}}
	}
	titled := &mcp.ElicitParams{RequestedSchema: map[string]any{"properties": map[string]any{
		"decision": map[string]any{"oneOf": []any{map[string]any{"const": "no"}, map[string]any{"const": "once"}}}}}}
	all := enum("no", "stop", "once", "run", "session", "session_any")
	for name, row := range map[string]struct {
		how  width
		form *mcp.ElicitParams
		want map[string]any
	}{
		"narrowest":               {narrowest, all, map[string]any{"decision": "once", "reason": "as agreed"}},
		"natural":                 {natural, all, map[string]any{"decision": "session", "reason": "as agreed"}},
		"widest":                  {widest, all, map[string]any{"decision": "session_any", "reason": "as agreed"}},
		"to a loop":               {looping, all, map[string]any{"decision": "run", "reason": "as agreed", "count": "100"}},
		"the most calls of a run": {natural, enum("no", "once", "run"), map[string]any{"decision": "run", "reason": "as agreed", "count": "100"}},
		"only once":               {widest, titled, map[string]any{"decision": "once", "reason": "as agreed"}},
		"no":                      {refusing, all, map[string]any{"decision": "no", "reason": "as agreed"}},
		"nobody is there":         {dismissing, all, nil},
	} {
		got, d, err := row.how.choose(row.form)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(row.want, got.Content); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if row.form != titled && d.lines() != 3 {
			t.Errorf("%s: %d lines", name, d.lines())
		}
	}
	if _, _, err := widest.choose(enum("no", "always")); err == nil {
		t.Error("a form whose yeses are not known was answered")
	}
}

func TestCode(t *testing.T) {
	calls := []call{{Tool: "git__git_log", Args: []byte(`{"n":1}`)}, {Tool: "sequential-thinking__think", Args: []byte(`{}`)}}
	for parallel, want := range map[bool]string{
		false: "const r1 = await codemode.git__git_log({\"n\":1});\nconst r2 = await codemode[\"sequential-thinking__think\"]({});\nreturn [r1, r2];\n",
		true:  "return await Promise.all([\n  codemode.git__git_log({\"n\":1}),\n  codemode[\"sequential-thinking__think\"]({}),\n]);\n",
	} {
		if diff := cmp.Diff(want, code(calls, parallel)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A question about all that a script is going to do is one about its last call too.
func TestListed(t *testing.T) {
	const question = "Make these 2 calls?\n• Call 1: Fill form\n• Call 12, to come: Click\nA yes to calls to come holds for 5 minutes."
	for call, want := range map[int]bool{1: true, 2: false, 12: true} {
		if got := listed(question, call); got != want {
			t.Errorf("call %d: %v", call, got)
		}
	}
}
