//go:build real && linux

package main_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The units of docs/deploy/systemd are read by systemd itself, as far as it can without
// running them, and its own program hands over a socket.
func TestRealSystemd(t *testing.T) {
	t.Parallel()
	units := filepath.Join("..", "..", "docs", "deploy", "systemd")
	bin, dir := programs(t), t.TempDir()
	var files []string
	for _, name := range []string{"codemode-bridge.service", "codemode-bridge.socket", "codemode-bridge-page.socket"} {
		text, err := os.ReadFile(filepath.Join(units, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, name))
		mustWrite(t, files[len(files)-1], strings.ReplaceAll(string(text), "/usr/local/bin/codemode-bridge", filepath.Join(bin, "codemode-bridge")))
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify", "--man=no"}, files...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) && !strings.Contains(line, "Unknown key 'DelegateSubgroup'") { // which is there since release 254
			t.Errorf("systemd says %s", line)
		}
	}
	if err != nil {
		t.Errorf("the units: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=35", "--no-pager", files[0]).CombinedOutput(); err != nil {
		t.Errorf("the service is less hardened than it was: %v\n%s", err, out)
	}
	// It starts the bridge with the first connection, which is answered.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	config := filepath.Join(dir, "config.json")
	mustWrite(t, config, `{"servers": {"time": {"builtin": "time"}}, "approvals": {"listen": "off"}}`)
	cmd := exec.CommandContext(t.Context(), "systemd-socket-activate", "--listen="+address, "--fdname=http",
		"--setenv=HOME="+dir, "--setenv=XDG_STATE_HOME="+dir, "--setenv=XDG_CACHE_HOME="+dir, "--setenv=XDG_CONFIG_HOME="+dir,
		filepath.Join(bin, "codemode-bridge"), "serve", "--config", config)
	said := new(talk)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	eventually(t, "nobody listens", func() bool { return strings.Contains(said.String(), "Listening on") })
	r, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("%s\n%s", r.Status, said)
	}
	eventually(t, "it does not say where it serves", func() bool { return strings.Contains(said.String(), "endpoint     http://"+address+"/mcp") })
}
