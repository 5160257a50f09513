package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// at runs a command of the program with a home folder of its own.
func at(t *testing.T, home, config string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs(t), "codemode-bridge"), append(args, "--config", config)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A backup is taken while a bridge writes: each is whole, and has what was done before it.
// While the bridge runs, nothing is restored over its store.
func TestBackupWhileABridgeWrites(t *testing.T) {
	t.Parallel()
	s := serve(t, `{"servers": {"time": {"builtin": "time"}}, "approvals": {"listen": "127.0.0.1:0"}}`)
	home := filepath.Dir(s.file)
	c, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	stop := keepsCalling(t, c)
	rows := -1
	for _, name := range []string{"a.backup", "b.backup", "c.backup"} {
		file := filepath.Join(t.TempDir(), name)
		if out, err := at(t, home, s.file, "backup", file); err != nil {
			t.Fatalf("backup: %v\n%s", err, out)
		}
		if out, err := at(t, home, s.file, "restore", file, "--replace"); err == nil || !strings.Contains(out, "a bridge uses the store that would be restored") {
			t.Errorf("restored over a bridge that runs: %v\n%s", err, out)
		}
		fresh := t.TempDir()
		out, err := at(t, fresh, filepath.Join(fresh, "config.json"), "restore", file)
		if err != nil || !strings.Contains(out, "the log is whole") {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		out, err = at(t, fresh, filepath.Join(fresh, "config.json"), "audit", "query", "--json", "--limit", "0")
		if n := strings.Count(out, `"event"`); err != nil || n <= rows {
			t.Errorf("%s has %d records, the one before %d: %v\n%.300s", name, n, rows, err, out)
		} else {
			rows = n
		}
	}
	stop()
}

// keepsCalling has a client make one call after the other, from before it returns until
// what it returns is called.
func keepsCalling(t *testing.T, c *mcp.ClientSession) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, writing := make(chan struct{}), sync.WaitGroup{}
	writing.Go(func() {
		for n := 0; ; n++ {
			_, err := eval(ctx, c, `return await codemode.time__now({})`)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("a call while a backup is made: %v", err)
			}
			if n == 0 {
				close(begun)
			}
			if err != nil {
				return
			}
		}
	})
	<-begun
	stop = func() { cancel(); writing.Wait() }
	t.Cleanup(stop)
	return stop
}

// Runs that waited when the backup was made may have gone on since: they end, with their
// questions and all grants, unless somebody says that no bridge ran.
func TestRestoreEndsWhatWaited(t *testing.T) {
	t.Parallel()
	s := serves(t, fmt.Sprintf(`{
  "servers": {"utils": {"builtin": "utils"}},
  "surface": "full",
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__hash"], "elicitationFallback": "queue"}}},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}
`, approverJSON("ann", "admin", annsToken)))
	home := filepath.Dir(s.serving.file)
	s.asks(s.starts(annsToken, `return await codemode.utils__hash({text: "a"})`))
	s.kill()
	file := filepath.Join(t.TempDir(), "a.backup")
	if out, err := at(t, home, s.serving.file, "backup", file); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	for _, row := range []struct {
		args []string
		said string
		open bool
	}{
		{nil, "ended, since nobody knows what was done after the backup: 1 paused run, 1 question, 0 grants", false},
		{[]string{"--continue"}, "the log is whole", true},
	} {
		fresh := t.TempDir()
		config := filepath.Join(fresh, "config.json")
		out, err := at(t, fresh, config, append([]string{"restore", file}, row.args...)...)
		if err != nil || !strings.Contains(out, row.said) {
			t.Errorf("restore %v: %v\n%s", row.args, err, out)
		}
		out, err = at(t, fresh, config, "approvals", "list")
		if open := strings.Contains(out, "utils__hash"); err != nil || open != row.open {
			t.Errorf("restore %v: open questions: %v\n%s", row.args, err, out)
		}
	}
}
