//go:build unix

package main_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttptest"
)

// A bridge that a service manager starts serves on the sockets that it was given, says when
// it is ready, reads its certificate anew when it is told to, and says that it ends.
func TestUnderAServiceManager(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "codemode") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close() })
	told := func() string {
		t.Helper()
		text := make([]byte, 4096)
		if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := manager.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	var sockets []*os.File
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		l.Close()
		sockets, addresses = append(sockets, f), append(addresses, l.Addr().String())
	}
	trust := mcphttptest.Certificate(t, dir, 1, time.Now().Add(90*24*time.Hour))
	s := serving{file: filepath.Join(dir, "config.json")}
	s.write(t, fmt.Sprintf(`{"servers": {"time": {"builtin": "time"}}, "http": {"listen": "127.0.0.1:1", "tls": {"cert": "tls.crt", "key": %q}}, "approvals": {"listen": "127.0.0.1:1"}}`, filepath.Join(dir, "tls.key")))
	// The process number of the bridge is known to nobody before it is there.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", filepath.Join(programs(t), "codemode-bridge"), "serve", "--config", s.file)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir,
		"LISTEN_FDS=2", "LISTEN_FDNAMES=page:http", "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	cmd.ExtraFiles = sockets
	said := new(talk)
	cmd.Stderr = said
	s.start(t, cmd)
	if s.endpoint != "https://"+addresses[1]+"/mcp" || s.page != "http://"+addresses[0] {
		t.Errorf("it serves %s and %s, and was given %s", s.endpoint, s.page, addresses)
	}
	if text := told(); !strings.HasPrefix(text, "READY=1\n") || !strings.Contains(text, s.endpoint) {
		t.Errorf("it said %q", text)
	}
	healthy := func() bool {
		r, err := trusting(trust).Get("https://" + addresses[1] + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
	if !healthy() {
		t.Error("it does not answer on the socket")
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if first, second := told(), told(); first != "RELOADING=1" || second != "READY=1" {
		t.Errorf("it said %q, then %q", first, second)
	}
	if !healthy() {
		t.Error("SIGHUP ended it")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text := told(); !strings.HasPrefix(text, "STOPPING=1\n") {
		t.Errorf("it said %q", text)
	}
}
