package worker

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
	"codemode-bridge/sandbox/wire"
)

// TestMain lets the test binary be the worker: the tests of what ends a
// process need a process.
func TestMain(m *testing.M) {
	if os.Getenv("CODEMODE_TEST_WORKER") == "1" {
		Main()
	}
	time.Local = scriptZone
	if confinedMain != nil {
		confinedMain()
	}
	os.Exit(m.Run())
}

// confinedMain, if it is set, is what this process is for instead of tests.
var confinedMain func()

// A child is a worker in a process of its own.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	conn   *wire.Conn
	raw    io.Writer // what conn writes to
	stderr bytes.Buffer
	close  func() error
	ready  wire.Ready
}

func startChild(t *testing.T, heap int64) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(racing.Program())}
	c.cmd.Env = []string{"CODEMODE_TEST_WORKER=1"}
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.conn, c.raw, c.close = wire.New(out, in), in, in.Close
	t.Cleanup(func() { in.Close(); c.cmd.Process.Kill(); c.cmd.Wait() })
	if err := c.conn.Send(wire.KindHello, wire.Hello{Version: wire.Version, Heap: heap}); err != nil {
		t.Fatal(err)
	}
	f, err := c.conn.Read()
	if err != nil {
		t.Fatalf("reading ready: %v, stderr: %s", err, c.stderr.String())
	}
	c.ready = decode[wire.Ready](t, f)
	return c
}

func (c *child) send(script string, limits wire.Limits) {
	c.t.Helper()
	if err := c.conn.Send(wire.KindRun, wire.Run{ID: 1, Start: testStart, Limits: limits}, []byte(script)); err != nil {
		c.t.Fatal(err)
	}
}

// end reads until the worker ends and returns its exit code and the frames
// that came before.
func (c *child) end() (code int, frames []wire.Frame) {
	c.t.Helper()
	for {
		f, err := c.conn.Read()
		if err != nil {
			break
		}
		frames = append(frames, f)
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), frames
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return 0, frames
}

func TestProcessEndsWithItsPipe(t *testing.T) {
	c := startChild(t, 64<<20)
	c.close()
	if code, _ := c.end(); code != 0 {
		t.Errorf("exit code %d, want 0: %s", code, c.stderr.String())
	}
}

func TestProcessEndsWithItsPipeWhileAScriptRuns(t *testing.T) {
	c := startChild(t, 64<<20)
	limits := testLimits()
	limits.CPU = time.Hour
	c.send("if (0) codemode.time__now(); while (true) {}", limits)
	for {
		f, err := c.conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == wire.KindPreview {
			break
		}
	}
	c.close()
	if code, _ := c.end(); code != 0 {
		t.Errorf("exit code %d, want 0: %s", code, c.stderr.String())
	}
}

// TestProcessLimits runs what a worker does not survive, and checks how it
// reports that.
func TestProcessLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that fill memory")
	}
	if !limitData {
		t.Skip("nothing would bound the memory of these processes")
	}
	short := testLimits()
	short.CPU = 300 * time.Millisecond
	long := testLimits()
	long.CPU = 20 * time.Second
	for _, c := range []struct {
		name   string
		script string
		limits wire.Limits
		codes  []int // -1: a signal; 2: Go's own fatal errors
		stderr string
	}{
		// On a busy machine the system's limit may come before the monitor.
		{"memory bomb", "console.log('begin'); const a = []; for (;;) a.push(new Array(1000).fill({}))", long, []int{wire.ExitMemory, 2}, "memory"},
		{"memory bomb at once", "return 'x'.repeat(2 ** 34)", long, []int{wire.ExitMemory, 2, -1}, ""},
		{"buffer bomb", "return new ArrayBuffer(2 ** 40)", long, []int{wire.ExitMemory, 2, -1}, ""},
		{"endless native loop", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", short, []int{wire.ExitDeadline, wire.ExitWall}, "did not stop"},
		{"endless parser", "return " + strings.Repeat("(a = ", 40) + "1" + strings.Repeat(") => 1", 40), short, []int{wire.ExitDeadline, wire.ExitWall}, "did not stop"},
		{"a million parentheses", strings.Repeat("(", 1_000_000), long, []int{2, wire.ExitMemory, wire.ExitDeadline, -1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := startChild(t, 64<<20)
			w.send(c.script, c.limits)
			code, frames := w.end()
			for _, want := range c.codes {
				if code == want {
					code = 0
				}
			}
			if code != 0 {
				t.Errorf("exit code %d, want one of %v: %.2000s", code, c.codes, w.stderr.String())
			}
			for _, f := range frames {
				if f.Kind == wire.KindDone {
					t.Errorf("the run was done: %s", f.Header)
				}
			}
			if !strings.Contains(w.stderr.String(), c.stderr) {
				t.Errorf("stderr %q, want %q", w.stderr.String(), c.stderr)
			}
			if strings.Contains(c.script, "console.log") {
				found := false
				for _, f := range frames {
					found = found || f.Kind == wire.KindLog
				}
				if !found {
					t.Error("what the script logged before it died is lost")
				}
			}
		})
	}
}

// TestProcessRegexp holds that the second regular expression engine, which
// never returns to the first in between, ends at the deadline too.
func TestProcessRegexp(t *testing.T) {
	c := startChild(t, 64<<20)
	limits := testLimits()
	limits.CPU = 300 * time.Millisecond
	c.send("return /(?=(a+)+$)b/.test('a'.repeat(40) + '!') || /(a+)+(?=b)/.test('a'.repeat(40))", limits)
	for {
		f, err := c.conn.Read()
		if err != nil {
			break // the deadline of the process
		}
		if f.Kind == wire.KindDone {
			done := decode[wire.Done](t, f)
			if done.Err == nil || done.Err.Kind != wire.FailureLimit {
				t.Errorf("done with %+v, want the limit of cpu time", done.Err)
			}
			return
		}
	}
	if code, _ := c.end(); code != wire.ExitDeadline && code != wire.ExitWall {
		t.Errorf("exit code %d, want %d", code, wire.ExitDeadline)
	}
}

func TestProcessRefusesAnotherProtocol(t *testing.T) {
	c := startChild(t, 64<<20)
	if err := c.conn.Send(wire.KindReply, wire.Reply{Run: 1, Number: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.Send(wire.KindHello, wire.Hello{Version: wire.Version}); err != nil {
		t.Fatal(err)
	}
	if code, _ := c.end(); code != wire.ExitProtocol {
		t.Errorf("exit code %d, want %d", code, wire.ExitProtocol)
	}
}

// TestProcessRefusesBrokenFrames holds that a broken frame always ends a worker in
// the same way, while it waits and while a script runs.
func TestProcessRefusesBrokenFrames(t *testing.T) {
	for i := range 20 {
		c := startChild(t, 64<<20)
		if running := i%2 == 1; running {
			limits := testLimits()
			limits.CPU = time.Hour
			c.send("if (0) codemode.time__now(); while (true) {}", limits)
			if f, err := c.conn.Read(); err != nil || f.Kind != wire.KindPreview {
				t.Fatal(f.Kind, err)
			}
		}
		if _, err := c.raw.Write([]byte{0xff, 0xff, 0xff, 0xff, byte(wire.KindRun)}); err != nil {
			t.Fatal(err)
		}
		if code, _ := c.end(); code != wire.ExitProtocol {
			t.Fatalf("exit code %d, want %d", code, wire.ExitProtocol)
		}
	}
}

// TestProcessHardening holds that a worker reports each step of its confinement, and
// that those which every Linux has succeeded.
func TestProcessHardening(t *testing.T) {
	c := startChild(t, 64<<20)
	if len(c.ready.Hardening) == 0 {
		t.Fatal("nothing is said of what confines the worker")
	}
	if runtime.GOOS != "linux" {
		return
	}
	if limitData && c.ready.Hardening["memory-limit"] != "on" {
		t.Errorf("memory-limit: %q, want on", c.ready.Hardening["memory-limit"])
	}
	for _, step := range []string{"no-core-dump", "few-descriptors", "not-dumpable", "parent-death-signal"} {
		if c.ready.Hardening[step] != "on" {
			t.Errorf("%s: %q, want on (all: %v)", step, c.ready.Hardening[step], c.ready.Hardening)
		}
	}
	if c.ready.Hardening["landlock"] == "" || c.ready.Hardening["no-new-privileges"] == "" {
		t.Errorf("landlock or no-new-privileges are not reported: %v", c.ready.Hardening)
	}
}
