//go:build real && linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/profiles/known"
	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// premises are what a server in a box works on, and what is beside that.
type premises struct {
	home, workspace, key, canary string
	port                         string       // of a service of this machine
	reached                      atomic.Int64 // how often somebody connected to it
	left                         *os.File     // a pipe that what the server leaves behind has open
}

const keyText = "PRIVATE KEY of the person"

func newPremises(t *testing.T) *premises {
	t.Helper()
	home := t.TempDir()
	g := &premises{home: home, workspace: filepath.Join(home, "app"), key: filepath.Join(home, ".ssh", "id"), canary: filepath.Join(home, "canary")}
	for _, folder := range []string{g.workspace, filepath.Dir(g.key)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, g.key, keyText)
	mustWrite(t, g.canary, "sings")
	mustWrite(t, filepath.Join(g.workspace, "had"), "overwritten")
	if err := os.Symlink(g.key, filepath.Join(g.workspace, "link")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
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
	_, g.port, _ = net.SplitHostPort(l.Addr().String())
	return g
}

func (g *premises) fill(text string) string {
	return strings.NewReplacer("$W", g.workspace, "$K", g.key, "$C", g.canary, "$P", g.port).Replace(text)
}

// untouched checks that everything outside is as it was.
func (g *premises) untouched(t *testing.T) {
	t.Helper()
	for path, want := range map[string]string{g.key: keyText, g.canary: "sings"} {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
	there, err := os.ReadDir(g.home)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range there {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{".ssh", "app", "canary"}, names); diff != "" {
		t.Errorf("beside the workspace:\n%s", diff)
	}
	if n := g.reached.Load(); n > 0 {
		t.Errorf("it connected to this machine %d times", n)
	}
}

// box is the box that is proposed for a known server, as the configuration of a person
// with this workspace would have it, and the flags that it is started with in there.
func (g *premises) box(t *testing.T, name string, args []string, env map[string]string) (confine.Box, []string) {
	t.Helper()
	s, _ := known.Find(name)
	text, err := json.Marshal(map[string]any{"command": "npx", "args": append([]string{"-y", s.Launch[0].NPM + "@" + s.Verified}, args...), "env": env})
	if err != nil {
		t.Fatal(err)
	}
	p := (&setup.Boxes{Workspace: []string{g.workspace}, Home: g.home, Path: browserPath()}).Propose(jsonc.Text(text))
	whole := fmt.Sprintf(`{"servers": {"x": {"command": "x", "confine": %s}}, "evaluation": {"workspace": %q}}`, p.Box, g.workspace)
	cfg, err := config.Parse(filepath.Join(g.home, "config.json"), []byte(whole), func(name string) (string, bool) { return g.home, name == "HOME" })
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	c, err := cfg.Box(cfg.Servers["x"], "")
	if err != nil {
		t.Fatal(err)
	}
	b := confine.Box{Write: c.Write, Read: c.Read, Run: c.Run, Net: confine.Net{Any: c.Net.Any}}
	for _, h := range c.Net.Hosts {
		b.Net.Hosts = append(b.Net.Hosts, confine.Host{Name: h.Name, Port: h.Port})
	}
	return b, p.Flags
}

// browserPath is where the browser of these tests is looked for.
func browserPath() string {
	if browser := os.Getenv("CHROMIUM"); browser != "" {
		return filepath.Dir(browser)
	}
	return os.Getenv("PATH")
}

// start starts a program in a box, and returns a session with it. It ends with the test.
func (g *premises) start(t *testing.T, r *real, b confine.Box, env []string, program string, args ...string) *mcp.ClientSession {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "HOME="+g.home, "PATH="+os.Getenv("PATH"))
	b.Read = slices.Concat(b.Read, confine.Needs(path, env), []string{filepath.Join(r.npm, "node_modules"), filepath.Join(r.npm, "sqlite", "node_modules")})
	read, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	input, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	p, err := b.Start(filepath.Join(filepath.Dir(r.bin), "codemode-worker"), func() *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, g.workspace, input, theirs, &stderr
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	input.Close()
	t.Cleanup(func() {
		p.Close()
		p.Cmd.Wait()
		if t.Failed() {
			t.Logf("it said: %s", stderr.String())
		}
	})
	if hold := b.Holds(p.Steps); !hold.Writes || !hold.Reads || hold.Net == b.Net.Any {
		t.Fatalf("not all of the box holds: %v", p.Steps.Off())
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: read, Writer: write}, nil)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return session
}

// call calls a tool, and returns all that it answers, or that it fails with.
func (g *premises) call(t *testing.T, session *mcp.ClientSession, c boxedCall) (text string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(g.fill(c.args))})
	if err != nil {
		return err.Error(), true
	}
	all, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(all), answer.IsError
}

// Each server whose known file proposes a box works in it, and what is outside stays
// untouched.
func TestRealBoxes(t *testing.T) {
	r := newReal(t)
	for _, name := range slices.Sorted(maps.Keys(boxed)) {
		row := boxed[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newPremises(t)
			args := []string{filepath.Join(r.npm, "node_modules", row.entry)}
			var own, env []string
			for _, a := range row.args {
				own = append(own, g.fill(a))
			}
			variables := make(map[string]string)
			for name, value := range row.env {
				variables[name] = g.fill(value)
				env = append(env, name+"="+g.fill(value))
			}
			box, flags := g.box(t, name, own, variables)
			session := g.start(t, r, box, env, "node", slices.Concat(args, own, flags)...)
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) == 0 {
				t.Fatalf("listing tools: %v", err)
			}
			for _, c := range row.calls {
				if text, failed := g.call(t, session, c); failed || !strings.Contains(text, c.says) {
					t.Errorf("%s: %s", c.tool, text)
				}
			}
			for _, c := range row.outside {
				if text, _ := g.call(t, session, c); strings.Contains(text, keyText) {
					t.Errorf("%s shows the key: %s", c.tool, text)
				}
			}
			g.untouched(t)
		})
	}
}
