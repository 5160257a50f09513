//go:build real

package main_test

// A remote server behind mcp-remote, as people use it whose client only starts programs:
// npx, then node, then the server elsewhere.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// everythingServes starts server-everything on a port of this machine and returns its
// endpoint. Another process may take the free port that was found before the server does:
// then it tries again.
func (r *real) everythingServes(t *testing.T) string {
	t.Helper()
	for range 5 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(free.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		free.Close()
		cmd := exec.Command("node", filepath.Join(r.npm, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
		cmd.Env = append(r.env, "PORT="+port)
		says, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := sync.OnceFunc(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		})
		t.Cleanup(end)
		lines := bufio.NewScanner(says)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "listening on port "+port) {
				go func() {
					for lines.Scan() { // its log has to be read, or it blocks
					}
				}()
				return "http://127.0.0.1:" + port + "/mcp"
			}
		}
		end()
	}
	t.Fatal("server-everything finds no port")
	return ""
}

// remote is a server for the configuration: mcp-remote in front of url.
func (r *real) remote(url string, flags ...string) map[string]any {
	return map[string]any{
		"command": "npx", "args": append([]string{"--no", "mcp-remote", url}, flags...), "cwd": r.npm,
		"env": map[string]string{"BROWSER": "true"}, // which it starts for a login
	}
}

func (r *real) configure(t *testing.T, servers map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(text))
}

func TestRealRemote(t *testing.T) {
	r, other := newReal(t), newReal(t)
	r.configure(t, map[string]any{
		"far":    r.remote(r.everythingServes(t)),
		"bridge": r.remote(other.serve(t)),
	})
	if out := r.bridge(t, "", "tools", "list", "--config", r.config); !strings.Contains(out, "far__echo") || !strings.Contains(out, "bridge__eval") {
		t.Errorf("the tools are\n%s", out)
	}
	j := r.job(t, "stdio")
	works := evalStep(`return await codemode["far__trigger-long-running-operation"]({duration: 0.5, steps: 5})`, nil)
	works.Progress = true
	j.Steps = []clientStep{works, evalStep(`
		const inner = await codemode.bridge__eval({code: "return await codemode.memory__read_graph({})"});
		const {temperature} = await codemode["far__get-structured-content"]({location: "Chicago"});
		const echoes = await Promise.all([1, 2, 3].map((n) => codemode.far__echo({message: "hi " + n})));
		let failed;
		try { await codemode.bridge__eval({code: "throw new Error('over there')"}) } catch (e) { failed = [e.name, e.server, e.message.includes("over there")] }
		return [inner.result.entities.length, temperature, echoes.join(), failed];`, nil)}
	a := r.client(t, "sdk", j)
	a.Steps[0].value(t, "an operation with progress")
	if len(a.Steps[0].Progress) == 0 {
		t.Error("no progress came through mcp-remote")
	}
	if got := a.Steps[1].value(t, "calls"); !sameJSON(got, `[0, 36, "Echo: hi 1,Echo: hi 2,Echo: hi 3", ["ToolError", "bridge", true]]`) {
		t.Errorf("returned %s", got)
	}
}

// The server wants a login, which mcp-remote does by itself: `servers test` shows the link
// and waits; then the tools are there, from then on without a login.
func TestRealRemoteLogin(t *testing.T) {
	r, tracker := newReal(t), newTracker(t)
	r.configure(t, map[string]any{"tracker": r.remote(tracker.URL, "--host", "127.0.0.1", "--auth-timeout", "120")})
	cmd := exec.CommandContext(t.Context(), r.bin, "servers", "test", "tracker", "--config", r.config)
	cmd.Env = r.env
	var out bytes.Buffer
	cmd.Stdout = &out
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(says); lines.Scan(); {
		if m := link.FindStringSubmatch(lines.Text()); m != nil {
			resp, err := http.Get(tracker.Browse(t, m[1]))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	if err := cmd.Wait(); err != nil || !regexp.MustCompile(`tracker +connected +1 `).MatchString(out.String()) {
		t.Errorf("servers test ends with %v and says\n%s", err, out.String())
	}
	if got := r.bridge(t, "", "eval", "--config", r.config, `return await codemode.tracker__list_issues({})`); strings.TrimSpace(got) != `"two issues"` {
		t.Errorf("the call returns %s", got)
	}
}
