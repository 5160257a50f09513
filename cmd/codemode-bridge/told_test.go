//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// onceServer is the fake upstream as a program that starts only while there is no folder
// lock, which it makes.
func onceServer(t *testing.T, lock string) map[string]any {
	t.Helper()
	s := fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")
	s["args"] = []string{"-c", `mkdir "$0" && exec "$1"`, lock, s["command"].(string)}
	s["command"] = "sh"
	return s
}

// asks are the commands that ask a bridge that runs.
var asks = [][]string{
	{"servers", "list", "--json"},
	{"tools", "list", "--json"},
	{"tools", "list", "--server", "once", "--json"},
	{"tools", "show", "once__write", "--json"},
	{"profiles", "explain", "-", "once__write", "--json"},
	{"check", "--tools", "--json"},
}

// onceDidNotStart reports whether a list of servers says that once was started in vain.
func onceDidNotStart(rows string) bool {
	var servers []struct{ Name, State, Why string }
	return json.Unmarshal([]byte(rows), &servers) == nil && slices.ContainsFunc(servers, func(s struct{ Name, State, Why string }) bool {
		return s.Name == "once" && (s.State == "failed" || s.State == "connecting") && strings.Contains(s.Why, "exit status 1")
	})
}

// Commands say the same of servers and tools whether they connect to the servers or ask
// the bridge that runs, and in the latter case start none. A bridge that hangs, and one
// with another configuration, is not waited for.
func TestCommandsAskTheBridgeThatRuns(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	free := func() {
		t.Helper()
		if err := os.Remove(lock); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	h := newHome(t, map[string]any{"servers": map[string]any{"once": onceServer(t, lock), "other": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")}})
	said := func() string {
		text := h.talk.String()
		h.talk.mu.Lock()
		defer h.talk.mu.Unlock()
		h.talk.text.Reset()
		return text
	}
	var connecting []string
	for _, ask := range asks {
		free()
		connecting = append(connecting, h.says([]int{0}, ask...))
	}
	if text := said(); strings.Contains(text, "as the bridge has them") {
		t.Errorf("without a bridge they say\n%s", text)
	}
	free()
	h.connect() // a command waits until its servers have answered
	said()
	for i, ask := range asks {
		if got := h.says([]int{0}, ask...); got != connecting[i] {
			t.Errorf("%q: with a bridge\n%s, without one\n%s", ask, got, connecting[i])
		}
		if text := said(); !strings.Contains(text, "servers as the bridge has them that serves 1 window (process ") || strings.Contains(text, "server once") {
			t.Errorf("%q says\n%s", ask, text)
		}
	}
	if out := h.says([]int{0, 1}, "doctor", "--json"); strings.Count(out, `"level":"ok","text":"2 tools, at the bridge that runs"`) != 2 {
		t.Errorf("doctor says\n%s", out)
	}
	said()

	host := h.hosts()[0].PID
	if err := syscall.Kill(host, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	rows := h.says([]int{0}, "servers", "list", "--json")
	if err := syscall.Kill(host, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// It starts the servers itself, and once cannot start a second time. That is failed, or
	// connecting while it is just tried again, which the other server leaves time for.
	if text := said(); !strings.Contains(text, "the bridge that runs does not answer: it is not asked\n") || !onceDidNotStart(rows) {
		t.Errorf("beside a bridge that hangs, after %v, it says\n%s%s", time.Since(began), text, rows)
	}

	text, err := os.ReadFile(h.config)
	if err == nil {
		err = os.WriteFile(h.config+".new", append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.config += ".new" // another file is another group: no bridge runs with it
	h.says([]int{0}, "tools", "list", "--server", "other", "--json")
	if text := said(); strings.Contains(text, "bridge") {
		t.Errorf("of another file it says\n%s", text)
	}
}

// A `serve` tells commands of its servers, as a bridge of windows does, and status shows
// them; nobody can join it as a window. It leaves nothing behind.
func TestCommandsAskServe(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	h := newHome(t, map[string]any{"servers": map[string]any{"once": onceServer(t, lock)}})
	s := serving{file: h.config}
	s.start(t, h.command("serve", "--listen", "127.0.0.1:0"))
	if out := h.says([]int{0}, "tools", "list", "--json"); !strings.Contains(out, `"once__write"`) {
		t.Errorf("tools list says\n%s", out)
	}
	if text, want := h.talk.String(), "servers as the bridge has them that serves "+s.endpoint+" (process "; !strings.Contains(text, want) {
		t.Errorf("it says\n%s\nand not %q", text, want)
	}
	if out := h.says([]int{0}, "status"); !strings.Contains(out, ": serves "+s.endpoint) || !strings.Contains(out, "\nonce    connected  2  ") {
		t.Errorf("status says\n%s", out)
	}
	var status struct {
		Shared  []hostStatus
		Serving []struct {
			Endpoint string
			Servers  []struct{ Name, State string }
			Runs     *int
		}
	}
	if err := json.Unmarshal([]byte(h.says([]int{0}, "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Shared) != 0 || len(status.Serving) != 1 || len(status.Serving[0].Servers) != 1 || status.Serving[0].Servers[0].State != "connected" || status.Serving[0].Runs == nil {
		t.Errorf("status --json says %+v", status)
	}
	s.stop()
	h.nothingLeft()
}
