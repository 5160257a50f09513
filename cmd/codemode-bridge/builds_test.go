//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stamped builds the programs as a release of a version, the worker as one of another.
// Flags are more of the compiler's.
func stamped(t *testing.T, version, worker string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	for program, as := range map[string]string{"codemode-bridge": version, "codemode-worker": worker} {
		args := append([]string{"build", "-ldflags", "-s -w -X main.version=" + as + " -X main.commit=c0ffee" + as[len(as)-1:], "-o", dir + string(filepath.Separator)}, flags...)
		build := exec.Command("go", append(args, "../"+program)...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s %s: %v\n%s", program, version, err, out)
		}
	}
	return dir
}

// The windows of a person who updates the programs: those that open after that are served
// by a bridge of the new version, while the old one goes on until its last window closes;
// doctor says that they differ. What waits then, the new one takes up.
func TestTwoBuilds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the programs again")
	}
	older, newer := programs(t), stamped(t, "7.0.2", "7.0.3")
	h := newHome(t, map[string]any{
		"servers": map[string]any{"utils": map[string]any{"builtin": "utils"}},
		"surface": "full", "runs": map[string]any{"keep": "1h"},
		"evaluation": map[string]any{"clientPatience": "1s", "defaultProfile": "p", "profiles": map[string]any{"p": map[string]any{"asklist": []string{"utils__hash"}, "elicitationFallback": "queue"}}},
		"approvals":  map[string]any{"listen": "off", "approvers": []any{json.RawMessage(approverJSON("ann", "admin", annsToken))}},
	})
	of := func(dir string, args ...string) *exec.Cmd {
		cmd := h.command(args...)
		cmd.Path = filepath.Join(dir, "codemode-bridge")
		cmd.Args[0] = cmd.Path
		return cmd
	}
	opens := func(dir string) *mcp.ClientSession { // of a client that cannot ask its person
		t.Helper()
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: of(dir, "run")}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, h.talk.String())
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var was struct{ Version, Commit string }
	if out, err := of(older, "version", "--json").Output(); err != nil || json.Unmarshal(out, &was) != nil || was.Version == "" || was.Version == "7.0.2" {
		t.Fatalf("the version of the older programs is %s: %v", out, err)
	}
	oldBuild := was.Version
	if was.Commit != "" { // it is built in a repository
		oldBuild += " (commit " + was.Commit + ")"
	}
	old := opens(older)
	if got := old.InitializeResult().ServerInfo.Version; got != was.Version {
		t.Errorf("initialize says %s", got)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = eval(t.Context(), old, "const a = await codemode.utils__base64_encode({text: 'a'}); return [a, await codemode.utils__hash({text: 'x'})]") // its window closes
	}()
	var open []struct{ ID, Run string }
	eventually(t, "nothing is asked", func() bool {
		return json.Unmarshal([]byte(h.says([]int{0}, "approvals", "list", "--json")), &open) == nil && len(open) == 1
	})
	run := open[0].Run

	fresh := opens(newer)
	if got := fresh.InitializeResult().ServerInfo.Version; got != "7.0.2" {
		t.Errorf("initialize says %s", got)
	}
	var status struct {
		Shared []struct{ Version, Commit string }
	}
	out, err := of(newer, "status", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	var versions []string
	for _, one := range status.Shared {
		versions = append(versions, one.Version+" "+one.Commit)
	}
	if want := []string{was.Version + " " + was.Commit, "7.0.2 c0ffee2"}; err != nil || !slices.Equal(versions, want) {
		t.Errorf("the bridges are %q, %v", versions, err)
	}
	out, _ = of(newer, "doctor").Output() // the worker of another release is none of its failures
	for _, want := range []string{"the worker is 7.0.3 (commit c0ffee3), this program 7.0.2 (commit c0ffee2)", "the bridge that runs is " + oldBuild + ", this program 7.0.2 (commit c0ffee2)", "close its windows"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
	if said := string(out); strings.Count(said, "the bridge that runs is") != 1 {
		t.Errorf("doctor says\n%s", said)
	}

	if err := old.Close(); err != nil { // once it knows that its run is paused
		t.Logf("closing: %v", err)
	}
	eventually(t, "the old bridge does not end", func() bool { return len(h.hosts()) == 1 })
	<-left
	approve := of(newer, "approvals", "approve", open[0].ID, "--token-stdin")
	approve.Stdin = strings.NewReader(annsToken + "\n")
	if err := approve.Run(); err != nil {
		t.Fatalf("approving: %v\n%s", err, h.talk.String())
	}
	eventually(t, "the new bridge does not take the run up", func() bool {
		out, err := of(newer, "runs", "show", run).Output()
		return err == nil && strings.Count(string(out), "outcome   done") == 2
	})
	shown, err := of(newer, "runs", "show", run).Output()
	if err != nil || strings.Count(string(shown), "resumed") != 1 {
		t.Errorf("%v\n%s", err, shown)
	}
}
