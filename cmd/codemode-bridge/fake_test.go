package main_test

// What the tests of the real binaries share: the programs, built once; an upstream server
// that writes down every effect that it has; and a client with a person.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// effectsVariable makes this program the fake upstream, and names the file to which it
// writes a line for every effect.
const effectsVariable = "FAKE_UPSTREAM_EFFECTS"

func TestMain(m *testing.M) {
	if effects := os.Getenv(effectsVariable); effects != "" {
		if err := serveFake(effects); err != nil {
			fmt.Fprintln(os.Stderr, "fake upstream:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(badgeVariable) != "" {
		if err := serveBadge(); err != nil {
			fmt.Fprintln(os.Stderr, "badge:", err)
			os.Exit(1)
		}
		return
	}
	if list := os.Getenv(listVariable); list != "" {
		if err := serveList(list); err != nil {
			fmt.Fprintln(os.Stderr, "listed tools:", err)
			os.Exit(1)
		}
		return
	}
	if user := os.Getenv(handsVariable); user != "" {
		err := become(user)
		if err == nil {
			err = serveHands()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "hands:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if dir := builtInto; dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// serveFake serves the tools
//
//	write  has an effect, and answers with its arguments, environment and command line
//	fail   has an effect, and answers with an error that repeats its arguments
//	grow   describes itself with its environment, as a careless server might
func serveFake(effects string) error {
	out, err := os.OpenFile(effects, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	add := func(name, description string, isError bool) {
		tool := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}
		server.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, err := fmt.Fprintln(out, name, string(r.Params.Arguments)); err != nil {
				return nil, err
			}
			said := fmt.Sprintf("%s had %s and token %s, started by %s", name, r.Params.Arguments, os.Getenv("FAKE_TOKEN"), os.Args[1:])
			return &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
		})
	}
	add("write", "Writes", false)
	add("fail", "Fails", true)
	fmt.Fprintln(os.Stderr, "started with", os.Getenv("FAKE_TOKEN"), os.Args[1:])
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// fakeServer is the fake upstream in a configuration.
func fakeServer(t *testing.T, effects, token string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": self, "env": map[string]string{effectsVariable: effects, "FAKE_TOKEN": token}}
}

// write is a script that makes one call of the fake upstream.
const write = `return await codemode.fake__write({})`

// countEffects counts the effects in a file.
func countEffects(t *testing.T, effects string) int {
	t.Helper()
	text, err := os.ReadFile(effects)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

var (
	builtInto string
	building  sync.Once
	buildErr  error
)

// programs builds both programs, once, and returns their folder.
func programs(t *testing.T) string {
	t.Helper()
	racing.Skip(t)
	building.Do(func() {
		if builtInto, buildErr = os.MkdirTemp("", "codemode-bridge-test"); buildErr != nil {
			return
		}
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", builtInto+string(filepath.Separator), ".", "../codemode-worker")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("building the programs: %w\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return builtInto
}

// A home is a user's folder with a configuration, and the programs.
type home struct {
	t      *testing.T
	dir    string
	config string
	env    []string // besides what every process has
	talk   talk
}

// talk collects what the programs of a home print, also several at the same time.
type talk struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *talk) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *talk) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func newHome(t *testing.T, config map[string]any, env ...string) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), env: env}
	h.config = filepath.Join(h.dir, "config.json")
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(h.config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// command is the bridge with arguments. What it prints is kept in talk.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(programs(h.t), "codemode-bridge"), append([]string{"-c", h.config}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "XDG_STATE_HOME=" + filepath.Join(h.dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(h.dir, "cache")}, h.env...)
	cmd.Stderr = &h.talk
	return cmd
}

// says runs a command and returns its standard output. It must end with one of codes.
func (h *home) says(codes []int, args ...string) string {
	h.t.Helper()
	cmd := h.command(args...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	for _, code := range codes {
		if cmd.ProcessState.ExitCode() == code {
			return string(out)
		}
	}
	h.t.Fatalf("%q ended with %v\n%s", args, err, h.talk.String())
	return ""
}

// count counts the rows of the log that flags select. It works without the
// configuration.
func (h *home) count(flags ...string) int {
	h.t.Helper()
	flags = append(flags, "--log", filepath.Join(h.dir, "state", "codemode-bridge", "audit.db"))
	var rows []json.RawMessage
	if err := json.Unmarshal([]byte(h.says([]int{0}, append([]string{"audit", "query", "--json", "-n", "0"}, flags...)...)), &rows); err != nil {
		h.t.Fatal(err)
	}
	return len(rows)
}

// A client is a session with a bridge that was started for it.
type client struct {
	*mcp.ClientSession
	process *exec.Cmd

	mu    sync.Mutex
	asked []string // what its person was shown
	says  string   // what its person answers; empty is "once"
}

// connect starts `run` and connects to it. Its person approves every call, once.
func (h *home) connect(flags ...string) *client {
	h.t.Helper()
	c, err := h.connectBy(h.command(append([]string{"run"}, flags...)...))
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.talk.String())
	}
	return c
}

// connectBy starts run and connects to it.
func (h *home) connectBy(run *exec.Cmd) (*client, error) {
	c := &client{process: run}
	person := func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		text, err := json.Marshal(r.Params)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.asked = append(c.asked, string(text))
		says := cmp.Or(c.says, "once")
		c.mu.Unlock()
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": says}}, nil
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person}).
		Connect(ctx, &mcp.CommandTransport{Command: c.process}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// call calls a tool and returns its answer as JSON.
func (c *client) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files are the contents of all files below a folder, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// callParams are those of eval with a script.
func callParams(code string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}}
}
