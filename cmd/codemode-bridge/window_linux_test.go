package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const firstLines = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// has reports whether a process has a pipe open.
func has(t *testing.T, pid int, pipe string) bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && to == pipe {
			return true
		}
	}
	return false
}

// nameOf returns what the system calls the pipe of which f is an end.
func nameOf(t *testing.T, f *os.File) (name string) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { name, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	}
	if err != nil || !strings.HasPrefix(name, "pipe:") {
		t.Fatalf("%q, %v", name, err)
	}
	return name
}

// A window that is killed leaves its client with pipes that are closed, although the
// process that all windows share had them open; the other windows go on.
func TestWindowIsKilled(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "x")}})
	other := h.connect()
	killed := h.command("run")
	in, out := started(t, killed)
	fmt.Fprint(in, firstLines+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"for (;;) await codemode.fake__write({})"}}}`+"\n")
	for countEffects(t, effects) == 0 {
		time.Sleep(time.Millisecond)
	}
	host := h.hosts()[0]
	name := nameOf(t, out.(*os.File))
	if !has(t, host.PID, name) {
		t.Error("the window's output was not handed over")
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	answers, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(answers), `"id":1`) || strings.Contains(string(answers), `"id":2`) {
		t.Errorf("its client read %s, %v", answers, err)
	}
	killed.Wait()
	if has(t, host.PID, name) {
		t.Error("the pipe is still open")
	}
	eventually(t, "the window is still listed", func() bool { return len(h.hosts()[0].Windows) == 1 })
	other.call(t, "eval", map[string]any{"code": write})
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	h.nothingLeft()
}

// A window whose requests are a file copies them: its answers come all the same.
func TestWindowThatReadsAFile(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}})
	requests := filepath.Join(t.TempDir(), "requests")
	if err := os.WriteFile(requests, []byte(firstLines+"no JSON\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 6 * 7"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(requests)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := h.command("run")
	cmd.Stdin = in
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "42") || !strings.Contains(string(out), "parse error") {
		t.Errorf("it printed %s, %v\n%s", out, err, h.talk.String())
	}
}

// The client's end of a window's pipe is read although the window itself is stopped: it
// only waits.
func TestWindowOnlyWaits(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"servers": map[string]any{}})
	cmd := h.command("run")
	in, out := started(t, cmd)
	fmt.Fprint(in, firstLines)
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); !strings.Contains(line, `"id":1`) {
		t.Fatalf("%s, %v", line, err)
	}
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 6 * 7"}}}`)
	line, err := lines.ReadString('\n')
	syscall.Kill(cmd.Process.Pid, syscall.SIGCONT)
	if !strings.Contains(line, "42") {
		t.Errorf("%s, %v", line, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the window ends with %v\n%s", err, h.talk.String())
	}
	h.nothingLeft()
}

// started starts a command, which is killed with the test, and returns its pipes.
func started(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return in, out
}
