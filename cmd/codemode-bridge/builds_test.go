//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stampedDocs is where the documents of stamped programs are.
const stampedDocs = "https://docs.example.com/7"

// stamped builds the programs as a release of a version, the worker as one of another.
// Flags are more of the compiler's.
func stamped(t *testing.T, version, worker string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	for program, as := range map[string]string{"codemode-bridge": version, "codemode-worker": worker} {
		args := append([]string{"build", "-ldflags", "-s -w -X main.version=" + as + " -X main.commit=c0ffee" + as[len(as)-1:] + " -X main.docs=" + stampedDocs, "-o", dir + string(filepath.Separator)}, flags...)
		build := exec.Command("go", append(args, "../"+program)...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s %s: %v\n%s", program, version, err, out)
		}
	}
	return dir
}

// A person updates the programs, under which bridges run.
func TestTwoBuilds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the programs again")
	}
	newer := stamped(t, "7.0.2", "7.0.3")
	t.Run("windows", func(t *testing.T) { t.Parallel(); windowsOfTwoBuilds(t, programs(t), newer) })
	t.Run("serve", func(t *testing.T) { t.Parallel(); servesOfTwoBuilds(t, programs(t), newer) })
	t.Run("documents", func(t *testing.T) { t.Parallel(); documentsOfABuild(t, newer) })
}

// Windows that open after an update are served by a bridge of the new version, while the old
// one goes on until its last window closes; doctor says that they differ. Meanwhile scripts
// run in the windows of both, and each call is made once. What waits then, the new one takes up.
func windowsOfTwoBuilds(t *testing.T, older, newer string) {
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{
		"servers": map[string]any{"utils": map[string]any{"builtin": "utils"}, "fake": fakeServer(t, effects, "")},
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
		_, _ = eval(t.Context(), old, "const a = await codemode.fake__write({key: 'waits'}); return [a, await codemode.utils__hash({text: 'x'})]") // its window closes
	}()
	var open []struct{ ID, Run string }
	eventually(t, "nothing is asked", func() bool {
		return json.Unmarshal([]byte(h.says([]int{0}, "approvals", "list", "--json")), &open) == nil && len(open) == 1
	})
	run := open[0].Run
	ofOld := keepBusy(t, opens(older), "old")
	ofOld.goesOn(t)

	fresh := opens(newer)
	ofNew := keepBusy(t, fresh, "new")
	ofNew.goesOn(t)
	ofOld.goesOn(t)
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

	ofOld.ends(t)
	ofNew.goesOn(t)
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
	ofNew.goesOn(t)
	ofNew.ends(t)
	text, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"waits"`); n != 1 {
		t.Errorf("the call before the one that waited was made %d times", n)
	}
	ofOld.madeOnce(t, string(text))
	ofNew.madeOnce(t, string(text))
}

// A busy window is one in which one script after another runs, with a call each.
type busyWindow struct {
	name   string
	window *mcp.ClientSession
	done   atomic.Int64
	stop   chan struct{}
	over   chan error
}

// keepBusy begins with the first script.
func keepBusy(t *testing.T, window *mcp.ClientSession, name string) *busyWindow {
	l := &busyWindow{name: name, window: window, stop: make(chan struct{}), over: make(chan error, 1)}
	go func() {
		for n := int64(1); ; n++ {
			if _, err := eval(t.Context(), window, fmt.Sprintf("return await codemode.fake__write({key: '%s %d.'})", name, n)); err != nil {
				l.over <- fmt.Errorf("script %d of the window %s: %w", n, name, err)
				return
			}
			l.done.Store(n)
			select {
			case <-l.stop:
				l.over <- nil
				return
			default:
			}
		}
	}()
	return l
}

// goesOn waits until scripts have begun and ended since.
func (l *busyWindow) goesOn(t *testing.T) {
	t.Helper()
	n := l.done.Load()
	eventually(t, "no script ends in the window "+l.name, func() bool { return l.done.Load() > n+1 || len(l.over) > 0 })
}

// ends lets the last script end, and closes the window.
func (l *busyWindow) ends(t *testing.T) {
	t.Helper()
	close(l.stop)
	if err := <-l.over; err != nil {
		t.Error(err)
	}
	if err := l.window.Close(); err != nil {
		t.Logf("closing: %v", err)
	}
}

// madeOnce checks the effects of its calls.
func (l *busyWindow) madeOnce(t *testing.T, effects string) {
	t.Helper()
	for n := range l.done.Load() {
		if key := fmt.Sprintf("%s %d.", l.name, n+1); strings.Count(effects, key) != 1 {
			t.Errorf("the call %q was made %d times", key, strings.Count(effects, key))
		}
	}
	if made := int64(strings.Count(effects, `"`+l.name+" ")); made != l.done.Load() {
		t.Errorf("the window %s has made %d calls, not %d", l.name, made, l.done.Load())
	}
}

// While serve of the older version runs, doctor of the new one says to restart it. After that
// its log, its metrics and initialize say the new version.
func servesOfTwoBuilds(t *testing.T, older, newer string) {
	b := &heldBench{commandLine: newCommandLine(t, `{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}, "log": {"format": "json"}, "metrics": {"listen": "127.0.0.1:0"}}`)}
	b.serving.file, b.bin = b.commandLine.file, older
	b.start()
	b.bin = newer
	doctor := func() string {
		out, _, _ := b.run("", "doctor") // the worker of another release is none of its failures
		return out
	}
	if said := doctor(); strings.Count(said, "the bridge that runs is") != 1 || !strings.Contains(said, "this program 7.0.2 (commit c0ffee2)") || !strings.Contains(said, "do: restart serve: the runs that wait go on in the new one") || strings.Contains(said, "close its windows") {
		t.Errorf("doctor says\n%s", said)
	}
	b.stop()
	said := new(talk)
	serve := b.program("", "serve", "--listen", "127.0.0.1:0")
	serve.Stderr = said
	b.serving.start(t, serve)
	if said := doctor(); strings.Contains(said, "the bridge that runs is") {
		t.Errorf("doctor says\n%s", said)
	}
	var begins, metrics struct{ Version, Commit, At string }
	eventually(t, "the log does not say where the metrics are", func() bool {
		for line := range strings.Lines(said.String()) {
			for message, into := range map[string]any{`"bridge begins"`: &begins, `"metrics can be read"`: &metrics} {
				if strings.Contains(line, message) {
					_ = json.Unmarshal([]byte(line), into) // what it lacks is missed below
				}
			}
		}
		return metrics.At != ""
	})
	if begins.Version != "7.0.2" || begins.Commit != "c0ffee2" {
		t.Errorf("the log says\n%s", said)
	}
	if _, text := request(t, http.DefaultClient, "GET", metrics.At, nil, nil); !strings.Contains(text, fmt.Sprintf("codemode_build_info{commit=%q,go_version=%q,version=%q} 1\n", "c0ffee2", runtime.Version(), "7.0.2")) {
		t.Errorf("the metrics say\n%s", text)
	}
	client, err := b.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := client.InitializeResult().ServerInfo.Version; got != "7.0.2" {
		t.Errorf("initialize says %s", got)
	}
}

// What a release says names the address of its documents.
func documentsOfABuild(t *testing.T, program string) {
	c := newCommandLine(t, `{"servers": {"utils": {"builtin": "utils"}}, "audit": {"push": {"webhook": {"url": "http://127.0.0.1:1", "secret": "0123456789abcdef"}}}}`)
	c.bin = program
	if said, _, _ := c.run("", "doctor"); !strings.Contains(said, "do: records are kept here until it takes them; "+stampedDocs+"/docs/deploy/push.html says what it gets\n") {
		t.Errorf("doctor says\n%s", said)
	}
	if _, said, code := c.run("", "laptops", "invite", "ann"); code != 3 || !strings.Contains(said, "makes it one; "+stampedDocs+"/docs/laptops.html says more\n") {
		t.Errorf("laptops invite says %d\n%s", code, said)
	}
	if err := os.WriteFile(c.file, []byte(`{"http": {"listn": "x"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"eval", "1"}} {
		if _, said, code := c.run("", args...); code != 3 || !strings.Contains(said, "hint: codemode-bridge config explain http says what can stand there, and so does "+stampedDocs+"/docs/reference/config.html#http\n") {
			t.Errorf("%q says %d\n%s", args, code, said)
		}
	}
}
