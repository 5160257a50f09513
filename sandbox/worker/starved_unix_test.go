//go:build unix

package worker

import (
	"syscall"
	"testing"
	"time"

	"codemode-bridge/sandbox/wire"
)

// TestProcessStarvedMatch holds that a match which does not end before its run's time is
// over ends the worker, and does not count as "no match" in a call: the worker has no
// processor from the beginning of the match until the run's wall time is over. Nothing lies
// between the first match and its call where an interrupted engine would stop.
func TestProcessStarvedMatch(t *testing.T) {
	c := startChild(t, 64<<20)
	limits := testLimits()
	limits.CPU = 300 * time.Millisecond
	c.send(`const match = RegExp.prototype.test.bind(/^(?=(a|aa)+$)/, "a".repeat(60) + "!");
		try { codemode.mail__send({found: {toJSON: match}}) } catch {}
		codemode.mail__send({found: match()})`, limits)
	if f, err := c.conn.Read(); err != nil || f.Kind != wire.KindPreview { // it matches by now
		t.Fatal(f.Kind, err)
	}
	signal(t, c, syscall.SIGSTOP)
	time.Sleep(wire.WallFactor * limits.CPU)
	signal(t, c, syscall.SIGCONT)
	for {
		f, err := c.conn.Read()
		if err != nil {
			break
		}
		t.Errorf("a %s frame: %s", f.Kind, f.Body)
		if f.Kind == wire.KindIdle || f.Kind == wire.KindDone {
			c.close() // this worker does not end by itself
		}
	}
	code, _ := c.end()
	if code != wire.ExitWall {
		t.Errorf("exit code %d, want %d: %s", code, wire.ExitWall, c.stderr.String())
	}
}

func signal(t *testing.T, c *child, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
