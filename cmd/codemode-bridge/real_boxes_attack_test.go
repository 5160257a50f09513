//go:build real && linux

package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A program that a real server starts, as a model could have it do, reaches nothing
// beyond the server's box, and ends with it.
func TestRealBoxesContain(t *testing.T) {
	r := newReal(t)
	g := newPremises(t)
	var reached []string
	pipe := filepath.Join(g.workspace, "pipe")
	t.Run("server", func(t *testing.T) {
		program, err := os.ReadFile(filepath.Join("testdata", "real", "hostile.mjs"))
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(g.workspace, "hostile.mjs"), string(program))
		socket := filepath.Join(t.TempDir(), "socket")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				g.reached.Add(1)
				conn.Close()
			}
		}()
		t.Cleanup(func() { l.Close() })
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		about, err := json.Marshal(map[string]any{
			"workspace": g.workspace, "key": g.key, "canary": g.canary, "port": g.port, "socket": socket, "pipe": pipe, "bridge": os.Getpid(),
		})
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(g.workspace, "about.json"), string(about))
		row := boxed["desktop-commander"]
		box, _ := g.box(t, "desktop-commander", nil, nil)
		session := g.start(t, r, box, []string{"SSH_AUTH_SOCK=" + socket}, "node", filepath.Join(r.npm, "node_modules", row.entry))
		read, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		text, failed := g.call(t, session, boxedCall{"start_process", `{"command": "node $W/hostile.mjs $W/about.json; echo all of it", "timeout_ms": 60000}`, ""})
		if failed || !strings.Contains(text, "all of it") {
			t.Fatalf("it did not try everything: %s", text)
		}
		for _, m := range regexp.MustCompile(`(reached|contained) ([a-z][A-Za-z'/ ]+)`).FindAllStringSubmatch(text, -1) {
			if m[1] == "reached" && !slices.Contains(reached, m[2]) {
				reached = append(reached, m[2])
			}
		}
		if n := strings.Count(text, "contained "); n < 15 {
			t.Errorf("%d attempts: %s", n, text)
		}
		// At the end of this test the server's box ends. Then nobody has the pipe open.
		g.left = read
	})
	if diff := cmp.Diff([]string{"write in its workspace", "leave a program behind"}, reached); diff != "" {
		t.Errorf("it reached (-want +got):\n%s", diff)
	}
	g.untouched(t)
	if err := g.left.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(g.left); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what it left behind outlives it")
	} else if err != nil {
		t.Error(err)
	}
	g.left.Close()
}
