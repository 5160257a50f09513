//go:build real

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Balanced are three bridges with one store, each as on a machine of its own, and a load
// balancer in front of them, with the very configurations of docs/deploy.
type balanced struct {
	*real
	names   []string
	ports   map[string]string // by name
	running map[string]*exec.Cmd
	state   string // where each has a folder of its own
	marks   *marks
}

// Marks are the calls that reached the server behind all bridges.
type marks struct {
	mu  sync.Mutex
	all map[string]int
}

func (m *marks) of(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[key]
}

// serve is a server whose tools note the key of each call. wait answers once its key has
// been let go.
func (m *marks) serve(t *testing.T) string {
	type args struct {
		Key  string `json:"key"`
		Size int    `json:"size,omitempty"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "marks", Version: "1"}, nil)
	note := func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, any, error) {
		m.mu.Lock()
		m.all[in.Key]++
		m.mu.Unlock()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Key + strings.Repeat(".", in.Size)}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "note", Description: "notes a key"}, note)
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Description: "notes a key, with leave"}, note)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(handler)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

const annsReplicaToken, bobsReplicaToken = "the-token-of-ann-among-replicas", "the-token-of-bob-among-replicas"

func newBalanced(t *testing.T) *balanced {
	t.Helper()
	server := startPostgres(t)
	r := &balanced{real: newReal(t), names: []string{"web1", "web2", "web3"}, ports: map[string]string{}, running: map[string]*exec.Cmd{}, state: t.TempDir(), marks: &marks{all: map[string]int{}}}
	token := func(name, text string) string {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf(`{"name": %q, "sha256": %q}`, name, hex.EncodeToString(sum[:]))
	}
	mustWrite(t, r.config, fmt.Sprintf(`{
  "servers": {"marks": {"url": %q}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["marks__ask"], "default": "allow"}}},
  "http": {"tokens": [%s, %s]},
  "approvals": {"listen": "off"},
  "store": %q, "storeKey": "${STORE_KEY}"
}`, r.marks.serve(t), token("ann", annsReplicaToken), token("bob", bobsReplicaToken), storeAt(server, "team")))
	r.env = append(r.env, storeEnv...)
	for _, name := range r.names {
		r.ports[name] = freePort(t)
	}
	r.begin(t, r.names[0]) // which makes the tables
	for _, name := range r.names[1:] {
		r.begin(t, name)
	}
	t.Cleanup(func() {
		for _, cmd := range r.running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return r
}

// begin starts a replica and waits until it is ready.
func (r *balanced) begin(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command(r.bin, "serve", "--config", r.config, "--name", name, "--listen", "127.0.0.1:"+r.ports[name])
	home := filepath.Join(r.state, name)
	cmd.Env = append(slices.Clone(r.env), "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
	said := new(talk)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.running[name] = cmd
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("[%s]\n%s", name, said)
		}
	})
	eventually(t, name+" is not ready", func() bool {
		res, err := http.Get("http://127.0.0.1:" + r.ports[name] + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// tell tells a replica to end.
func (r *balanced) tell(t *testing.T, name string) {
	t.Helper()
	if err := r.running[name].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// ended waits until a replica that was told to end has ended.
func (r *balanced) ended(t *testing.T, name string) {
	t.Helper()
	if err := r.running[name].Wait(); err != nil {
		t.Errorf("%s ended with %v", name, err)
	}
	delete(r.running, name)
}

// balancers are what docs/deploy has configurations for: how each is started with one.
var balancers = map[string]func(t *testing.T, root, file string) *exec.Cmd{
	"haproxy": func(_ *testing.T, root, file string) *exec.Cmd {
		return exec.Command(filepath.Join(root, "usr/sbin/haproxy"), "-db", "-f", file)
	},
	"nginx": func(t *testing.T, root, file string) *exec.Cmd {
		dir := filepath.Dir(file)
		return exec.Command(filepath.Join(root, "usr/sbin/nginx"), "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"),
			"-g", "daemon off; pid "+filepath.Join(dir, "pid")+"; ")
	},
}

// balance starts a load balancer and returns the address of the bridges behind it.
func (r *balanced) balance(t *testing.T, kind string) string {
	t.Helper()
	root := os.Getenv("BALANCERS") // a folder into which packages were unpacked
	if root == "" {
		root = filepath.Join(r.npm, "balancers")
	}
	if _, err := exec.LookPath("/usr/sbin/" + kind); err == nil {
		root = "/"
	}
	name := map[string]string{"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[kind]
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	port, dir := freePort(t), t.TempDir()
	change := []string{"bind :7400", "bind 127.0.0.1:" + port, "listen 7400", "listen 127.0.0.1:" + port, "access_log off;", "access_log off;"}
	for i, name := range r.names {
		change = append(change, fmt.Sprintf("10.0.0.%d:7420", 11+i), "127.0.0.1:"+r.ports[name])
	}
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} { // the package's folders are root's
		change[5] += fmt.Sprintf(" %s_temp_path %s;", what, filepath.Join(dir, what))
	}
	file := filepath.Join(dir, name)
	mustWrite(t, file, strings.NewReplacer(change...).Replace(string(text)))
	cmd := balancers[kind](t, root, file)
	libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	said := new(talk)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s (run make test-real): %v", kind, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("[%s]\n%s", kind, said)
		}
	})
	address := "http://127.0.0.1:" + port
	eventually(t, kind+" is not ready", func() bool {
		res, err := http.Get(address + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return address + "/mcp"
}

// A stateless is the answer to a stateless call.
type stateless struct {
	status int
	Result struct {
		Structured    json.RawMessage            `json:"structuredContent"`
		IsError       bool                       `json:"isError"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
		RequestState  string                     `json:"requestState"`
	} `json:"result"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// value is what the script returned; else what came instead.
func (s stateless) value() string {
	var out struct {
		Result json.RawMessage `json:"result"`
	}
	if s.status != http.StatusOK || s.Result.IsError || json.Unmarshal(s.Result.Structured, &out) != nil {
		return fmt.Sprintf("status %d, error %d %s, %s", s.status, s.Error.Code, s.Error.Message, s.Result.Structured)
	}
	return string(out.Result)
}

// paused returns the run that is paused, if that is the answer.
func (s stateless) paused() string {
	var out struct{ Status, Run string }
	if s.status != http.StatusOK || json.Unmarshal(s.Result.Structured, &out) != nil || out.Status != "paused" {
		return ""
	}
	return out.Run
}

// post calls a tool as a client without a session. More are further parameters.
func post(url, token, tool string, arguments, more map[string]any) (s stateless, err error) {
	params := map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}}}}
	for name, v := range more {
		params[name] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		return s, err
	}
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return s, err
	}
	s.status = res.StatusCode
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, `"id":1`) {
			text = []byte(data)
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("status %d: %s: %w", s.status, text, err)
	}
	return s, nil
}

func mustPost(t *testing.T, url, token, tool string, arguments, more map[string]any) stateless {
	t.Helper()
	s, err := post(url, token, tool, arguments, more)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func code(text string) map[string]any { return map[string]any{"code": text} }

// yes is the parameters that say yes to all that was asked.
func (s stateless) yes() map[string]any {
	answers := map[string]any{}
	for id := range s.Result.InputRequests {
		answers[id] = map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}
	}
	return map[string]any{"requestState": s.Result.RequestState, "inputResponses": answers}
}

func TestRealBalancers(t *testing.T) {
	t.Parallel()
	r := newBalanced(t)
	at := func(name string) string { return "http://127.0.0.1:" + r.ports[name] + "/mcp" }

	t.Run("an answer at another bridge", func(t *testing.T) {
		const script = `const a = await codemode.marks__note({key: "first"}); const b = await codemode.marks__ask({key: "second"}); return [a, b, await codemode.marks__ask({key: a ? "third" : b})]`
		asked := mustPost(t, at("web1"), annsReplicaToken, "eval", code(script), nil)
		if len(asked.Result.InputRequests) != 1 {
			t.Fatalf("not asked: %+v", asked)
		}
		if theirs := mustPost(t, at("web2"), bobsReplicaToken, "eval", code(script), asked.yes()); !theirs.Result.IsError || !strings.Contains(string(theirs.Result.Structured), "not valid here") {
			t.Errorf("another principal answers: %+v", theirs)
		}
		again := mustPost(t, at("web2"), annsReplicaToken, "eval", code(script), asked.yes())
		if len(again.Result.InputRequests) != 1 {
			t.Fatalf("not asked for the second call: %+v", again)
		}
		done := mustPost(t, at("web3"), annsReplicaToken, "eval", code(script), again.yes())
		if got := done.value(); got != `["first","second","third"]` {
			t.Errorf("the script returned %s", got)
		}
		for _, key := range []string{"first", "second", "third"} {
			if n := r.marks.of(key); n != 1 {
				t.Errorf("the call %s was made %d times", key, n)
			}
		}
		var run struct{ Run string }
		if err := json.Unmarshal(done.Result.Structured, &run); err != nil {
			t.Fatal(err)
		}
		// Its result, wherever one asks; of nobody else's run.
		for _, name := range r.names {
			if fetched := mustPost(t, at(name), annsReplicaToken, "eval_resume", map[string]any{"run": run.Run}, nil); string(fetched.Result.Structured) != string(done.Result.Structured) {
				t.Errorf("at %s its result is %s", name, fetched.Result.Structured)
			}
			if theirs := mustPost(t, at(name), bobsReplicaToken, "eval_resume", map[string]any{"run": run.Run}, nil); !theirs.Result.IsError || !strings.Contains(string(theirs.Result.Structured), "there is no run") {
				t.Errorf("bob fetches at %s: %s", name, theirs.Result.Structured)
			}
		}
		// The same answer again asks nothing and calls nothing.
		if twice := mustPost(t, at("web1"), annsReplicaToken, "eval", code(script), asked.yes()); twice.value() != done.value() || r.marks.of("second") != 1 {
			t.Errorf("the answer again: %s", twice.value())
		}
	})

	t.Run("handles", func(t *testing.T) {
		made := mustPost(t, at("web1"), annsReplicaToken, "eval", code(`return await codemode.marks__note({key: "large", size: 300000})`), nil)
		var summary struct{ Handle string }
		if err := json.Unmarshal([]byte(made.value()), &summary); err != nil || summary.Handle == "" {
			t.Fatalf("no handle: %s", made.value())
		}
		read := code(fmt.Sprintf("return await codemode.read(%q, '[0:7]')", summary.Handle))
		for _, name := range r.names {
			if got := mustPost(t, at(name), annsReplicaToken, "eval", read, nil).value(); got != `"large.."` {
				t.Errorf("at %s ann reads %s", name, got)
			}
			if got := mustPost(t, at(name), bobsReplicaToken, "eval", read, nil).value(); !strings.Contains(got, "there is no handle") {
				t.Errorf("at %s bob reads %s", name, got)
			}
		}
	})

	for kind := range balancers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // the bridges wait before they end
			newBalanced(t).behind(t, kind)
		})
	}
}

// behind tries both eras of the protocol, and a rolling restart, behind a load balancer.
func (r *balanced) behind(t *testing.T, kind string) {
	url := r.balance(t, kind)
	for _, client := range []string{"modern", "legacy", "sdk"} {
		key := kind + " " + client
		steps := []clientStep{{Op: "list"}}
		for i := range 4 {
			steps = append(steps, evalStep(fmt.Sprintf(`return [await codemode.marks__note({key: "%[1]s a%[2]d"}), await codemode.marks__ask({key: "%[1]s b%[2]d"}), await codemode.marks__ask({key: "%[1]s c%[2]d"})].length`, key, i), nil))
		}
		a := r.client(t, client, clientJob{URL: url, Token: annsReplicaToken, Decision: "once", Steps: steps})
		for i, s := range a.Steps[1:] {
			if got := s.value(t, key); got != "3" {
				t.Errorf("%s: eval %d returned %s", key, i, got)
			}
			for _, call := range []string{"a", "b", "c"} {
				if n := r.marks.of(fmt.Sprintf("%s %s%d", key, call, i)); n != 1 {
					t.Errorf("%s: call %s of eval %d was made %d times", key, call, i, n)
				}
			}
		}
		if len(a.Asked) != 4 { // the second call was planned when they were asked about the first
			t.Errorf("%s: the person was asked %d times, in 4 evals", key, len(a.Asked))
		}
	}
	r.roll(t, kind, url)
}
