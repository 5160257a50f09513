package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inMounts is a command of the program after a script has prepared its home folder, in a
// namespace of mounts of its own.
func inMounts(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	writeText(t, filepath.Join(home, "config.json"), `{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}}`)
	writeText(t, filepath.Join(home, "placed.json"), `{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}, "audit": {"path": "audit.db"}}`)
	if err := os.Mkdir(filepath.Join(home, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script + "\nexec \"$@\"", "sh", filepath.Join(programs(t), "codemode-bridge")}, args...)...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CACHE_HOME="+filepath.Join(home, "state"))
	return cmd
}

// A disk that is full and one that is read-only are told in words, by each command that
// makes calls; where the audit log is elsewhere, calls are made all the same.
func TestDisksThatTakeNothing(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp").CombinedOutput(); err != nil {
		t.Skipf("this machine lets nobody mount in a namespace of their own: %s", out)
	}
	const call = `return await codemode.utils__base64_encode({text: "hi"})`
	for _, disk := range []struct{ name, script, refused, lacks string }{
		{"read-only", "mount -t tmpfs -o ro tmpfs state", "making the audit log's folder: mkdir", "read-only file system"},
		{"full", "mount -t tmpfs -o size=64k tmpfs state; head -c 200000 /dev/zero > state/fill 2>/dev/null", "hint: the disk is full: make room", "no space left on device"},
	} {
		t.Run(disk.name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"eval", call}, {"serve", "--listen", "127.0.0.1:0"}, {"run"}} {
				cmd := inMounts(t, disk.script, append(args, "--config", "config.json")...)
				out, err := cmd.CombinedOutput()
				if err == nil || cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), disk.refused) {
					t.Errorf("%s: %v\n%s", args[0], err, out)
				}
			}
			for args, want := range map[string]string{"eval": "aGk=", "run": "this window has servers of its own: "} {
				more := map[string][]string{"eval": {call}}[args]
				out, err := inMounts(t, disk.script, append([]string{args, "--config", "placed.json"}, more...)...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%s, the log elsewhere: %v\n%s", args, err, out)
				}
			}
			var s serving
			cmd, said := inMounts(t, disk.script, "serve", "--listen", "127.0.0.1:0", "--config", "placed.json"), new(talk)
			cmd.Stderr = said
			s.start(t, cmd)
			c, err := s.connect(t, "")
			if err != nil {
				t.Fatal(err)
			}
			if out, err := eval(t.Context(), c, call); err != nil || !strings.Contains(out, "aGk=") || !strings.Contains(said.String(), disk.lacks) {
				t.Errorf("serve, the log elsewhere: %s, %v\n%s", out, err, said)
			}
		})
	}
}

// A port in use is told with what to do; the page's is no reason not to serve.
func TestPortsInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	home := t.TempDir()
	config := filepath.Join(home, "config.json")
	writeText(t, config, `{"servers": {"utils": {"builtin": "utils"}}}`)
	out, err := at(t, home, config, "serve", "--listen", l.Addr().String())
	if err == nil || !strings.Contains(out, "address already in use\nhint: another program has it, perhaps another bridge") {
		t.Errorf("%v\n%s", err, out)
	}
	s := serve(t, `{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "`+l.Addr().String()+`"}}`)
	if s.page != "" {
		t.Errorf("there is a page at %s", s.page)
	}
	c, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := eval(t.Context(), c, `return 6 * 7`); err != nil || !strings.Contains(said, "42") {
		t.Errorf("%s, %v", said, err)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
