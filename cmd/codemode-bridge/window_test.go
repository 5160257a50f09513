//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A hostStatus is what `status` says of one process.
type hostStatus struct {
	PID     int `json:"pid"`
	Windows []struct{ PID int }
	Servers []struct {
		Name     string
		PID      int
		Sessions int
	}
}

// hosts returns the processes that serve windows of this home.
func (h *home) hosts() []hostStatus {
	h.t.Helper()
	var status struct{ Shared []hostStatus }
	if err := json.Unmarshal([]byte(h.says([]int{0}, "status", "--json")), &status); err != nil {
		h.t.Fatal(err)
	}
	return status.Shared
}

// nothingLeft checks that all processes that served windows have ended.
func (h *home) nothingLeft() {
	h.t.Helper()
	entries, err := os.ReadDir(filepath.Join(h.dir, "state", "codemode-bridge", "windows"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "key" {
			h.t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestWindowsShareABridge(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "x")}})
	first, second := h.connect(), h.connect()
	first.call(t, "eval", map[string]any{"code": write})
	second.call(t, "eval", map[string]any{"code": write})
	hosts := h.hosts()
	if len(hosts) != 1 || len(hosts[0].Windows) != 2 || len(hosts[0].Servers) != 1 || hosts[0].Servers[0].PID == 0 {
		t.Fatalf("two windows are served by %+v", hosts)
	}
	pids := []int{first.process.Process.Pid, second.process.Process.Pid}
	for _, w := range hosts[0].Windows {
		if !slices.Contains(pids, w.PID) || hosts[0].PID == w.PID {
			t.Errorf("a window of process %d, want %v", w.PID, pids)
		}
	}
	if text := h.says([]int{0}, "status"); !strings.Contains(text, ": 2 windows (") || !strings.Contains(text, "fake") {
		t.Errorf("status says\n%s", text)
	}

	// Each is a session of its own.
	var rows []struct{ Session string }
	if err := json.Unmarshal([]byte(h.says([]int{0}, "audit", "query", "--json", "--event-type", "intent")), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Session == rows[1].Session || rows[0].Session == "" {
		t.Errorf("sessions %v", rows)
	}

	// The first window, which started it, closes, and the second goes on.
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second.call(t, "eval", map[string]any{"code": write})
	after := h.hosts()
	if len(after) != 1 || len(after[0].Windows) != 1 || after[0].Servers[0].PID != hosts[0].Servers[0].PID {
		t.Errorf("without the first window: %+v", after)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	h.nothingLeft()
	if n := countEffects(t, effects); n != 3 {
		t.Errorf("%d effects", n)
	}
	if n := h.count("--event-type", "bridge_ended"); n != 1 {
		t.Errorf("%d bridges have ended", n)
	}
}

func TestWindowsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")}})
	programs(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := h.connectBy(h.command("run")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if hosts := h.hosts(); len(hosts) != 1 || len(hosts[0].Windows) != 5 {
		t.Errorf("five windows are served by %+v\n%s", hosts, h.talk.String())
	}
	if n := h.count("--event-type", "bridge_started"); n != 1 {
		t.Errorf("%d bridges were started", n)
	}
}

// However the configuration is found, by a flag, by a variable or in its usual place, its
// windows meet, and find the process that one of them has started.
func TestWindowsMeetHoweverTheFileIsNamed(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")}})
	usual := filepath.Join(h.dir, "config", "codemode-bridge", "config.json")
	text, err := os.ReadFile(h.config)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(usual), 0o700)
	}
	if err == nil {
		err = os.WriteFile(usual, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.config = usual
	h.env = append(h.env, "XDG_CONFIG_HOME="+filepath.Join(h.dir, "config"))
	unnamed := h.command("run")
	unnamed.Args = slices.Delete(unnamed.Args, 1, 3)
	byVariable := h.command("run")
	byVariable.Args = slices.Delete(byVariable.Args, 1, 3)
	byVariable.Env = append(byVariable.Env, "CODEMODE_CONFIG="+usual)
	for _, cmd := range []*exec.Cmd{unnamed, byVariable, h.command("run")} {
		if _, err := h.connectBy(cmd); err != nil {
			t.Fatal(err)
		}
	}
	if hosts := h.hosts(); len(hosts) != 1 || len(hosts[0].Windows) != 3 {
		t.Errorf("three windows are served by %+v\n%s", hosts, h.talk.String())
	}
}

func TestHostIsKilled(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "x")}})
	window := h.connect()
	answer := make(chan error, 1)
	go func() {
		_, err := window.CallTool(context.WithoutCancel(t.Context()), callParams(`for (;;) await codemode.fake__write({})`))
		answer <- err
	}()
	for countEffects(t, effects) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(h.hosts()[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err == nil || !strings.Contains(err.Error(), "the bridge that served this window has ended") {
		t.Errorf("the open call is answered with %v", err)
	}
	window.Close()
	if code := window.process.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the window ends with exit code %d", code)
	}
	if !strings.Contains(h.talk.String(), "codemode-bridge: the bridge that served this window has ended (process ") {
		t.Errorf("the window said\n%s", h.talk.String())
	}
	again := h.connect()
	again.call(t, "eval", map[string]any{"code": write})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	h.nothingLeft()
}

func TestWindowsThatDiffer(t *testing.T) {
	t.Parallel()
	server := fakeServer(t, filepath.Join(t.TempDir(), "effects"), "${SECRET}")
	server["cwd"] = t.TempDir()
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": server}}, "SECRET=canary-secret")
	run := func(change func(*exec.Cmd), flags ...string) {
		t.Helper()
		cmd := h.command(append([]string{"run"}, flags...)...)
		change(cmd)
		if _, err := h.connectBy(cmd); err != nil {
			t.Fatalf("%v\n%s", err, h.talk.String())
		}
	}
	hosts := func(what string, want int) {
		t.Helper()
		if all := h.hosts(); len(all) != want {
			t.Errorf("%s: %d processes serve windows, want %d", what, len(all), want)
		}
	}
	run(func(*exec.Cmd) {})
	hosts("one window", 1)
	run(func(c *exec.Cmd) { c.Env = append(c.Env, "TERM=other", "NOBODY_READS=this") })
	hosts("variables that do not matter", 1)
	run(func(c *exec.Cmd) { c.Dir = t.TempDir() })
	hosts("a folder that does not matter", 1)
	run(func(c *exec.Cmd) { c.Env = append(c.Env, "SECRET=another") })
	hosts("another value of the configuration's variable", 2)
	run(func(c *exec.Cmd) { c.Env = append(c.Env, "LANG=tlh") })
	hosts("another value of a variable that children get", 3)
	run(func(*exec.Cmd) {}, "--alone")
	hosts("a window that is alone", 3)

	server = fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x") // has no cwd: it runs in its window's folder
	h = newHome(t, map[string]any{"servers": map[string]any{"fake": server}})
	run(func(*exec.Cmd) {})
	run(func(c *exec.Cmd) { c.Dir = t.TempDir() })
	hosts("another folder", 2)

	h = newHome(t, map[string]any{"servers": map[string]any{}, "windows": map[string]any{"share": false}})
	run(func(*exec.Cmd) {})
	hosts("windows.share false", 0)
}

// While several windows share a bridge, an edit is refused that depends on something in
// which they may differ.
func TestEditThatWindowsDoNotShare(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	server := fakeServer(t, effects, "x")
	server["cwd"] = t.TempDir()
	h := newHome(t, map[string]any{"surface": "full", "servers": map[string]any{"fake": server}}, "SECRET=of-the-first")
	first, second := h.connect(), h.connect()
	before, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		eventually(t, "codemode_status does not say: "+want, func() bool {
			return strings.Contains(second.call(t, "codemode_status", map[string]any{}), want)
		})
	}
	edit := func(change map[string]any) {
		t.Helper()
		more := map[string]any{}
		for key, value := range server {
			more[key] = value
		}
		for key, value := range change {
			more[key] = value
		}
		if more["cwd"] == "" {
			delete(more, "cwd")
		}
		text, err := json.Marshal(map[string]any{"surface": "full", "servers": map[string]any{"fake": server, "more": more}})
		if err == nil {
			err = os.WriteFile(h.config, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(map[string]any{"args": []string{"${SECRET}"}})
	says("needs the variable SECRET")
	edit(map[string]any{"passEnv": []string{"SECRET"}})
	says("passes the variable SECRET")
	edit(map[string]any{"cwd": ""})
	says("in the folder of its window")
	if status := first.call(t, "codemode_status", map[string]any{}); !strings.Contains(status, "close all windows") || strings.Contains(status, `"more"`) {
		t.Errorf("the first window's status is %s", status)
	}
	if err := os.WriteFile(h.config, before, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an edit back is a problem", func() bool {
		return !strings.Contains(second.call(t, "codemode_status", map[string]any{}), "close all windows")
	})
}

func TestHostLingers(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}, "windows": map[string]any{"linger": "1h"}})
	h.connect().Close()
	hosts := h.hosts()
	if len(hosts) != 1 || len(hosts[0].Windows) != 0 {
		t.Fatalf("the last window has gone: %+v", hosts)
	}
	t.Cleanup(func() {
		if t.Failed() {
			syscall.Kill(hosts[0].PID, syscall.SIGKILL) // or it would stay
		}
	})
	second := h.connect()
	if after := h.hosts(); len(after) != 1 || after[0].PID != hosts[0].PID {
		t.Errorf("another window is served by %+v", after)
	}
	// A signal ends it in order.
	if err := syscall.Kill(hosts[0].PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Log(err)
	}
	second.Close()
	h.nothingLeft()
	if n := h.count("--event-type", "bridge_ended"); n != 1 {
		t.Errorf("%d bridges have ended", n)
	}
}

// If the host cannot start, the window says why, and exits with the host's code.
func TestHostThatCannotStart(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}, "audit": map[string]any{"path": "/dev/null/audit.db"}})
	cmd := h.command("run")
	if out, err := cmd.Output(); err == nil || cmd.ProcessState.ExitCode() != 3 || len(out) > 0 {
		t.Errorf("run: %v, standard output %q", err, out)
	}
	if !strings.Contains(h.talk.String(), "opening the audit log") || strings.Count(h.talk.String(), "hint:") != 1 {
		t.Errorf("the window said\n%s", h.talk.String())
	}
}

func TestHostIsNotTyped(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}})
	h.says([]int{2}, "host")
}

// If windows cannot meet safely, each serves itself.
func TestWindowsMeetInPrivate(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}})
	folder := filepath.Join(h.dir, "state", "codemode-bridge", "windows")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	h.connect().call(t, "eval", map[string]any{"code": "return 1"})
	if !strings.Contains(h.talk.String(), "this window has servers of its own") || !strings.Contains(h.talk.String(), "is open to other users") {
		t.Errorf("the window said\n%s", h.talk.String())
	}
	h.nothingLeft()
}

// A server with perSession has a process for each window.
func TestWindowsHaveServersOfTheirOwn(t *testing.T) {
	t.Parallel()
	server := fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")
	server["perSession"] = true
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": server}})
	sessions := func(want int) {
		t.Helper()
		for {
			hosts := h.hosts()
			if len(hosts) != 1 || hosts[0].Servers[0].Sessions < want {
				t.Fatalf("%+v, want %d sessions", hosts, want)
			}
			if hosts[0].Servers[0].Sessions == want {
				return
			}
			time.Sleep(5 * time.Millisecond) // the session ends a moment after its window
		}
	}
	first, second := h.connect(), h.connect()
	first.call(t, "eval", map[string]any{"code": write})
	sessions(1)
	second.call(t, "eval", map[string]any{"code": write})
	first.call(t, "eval", map[string]any{"code": write})
	sessions(2)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	sessions(1)
	second.call(t, "eval", map[string]any{"code": write})
}
