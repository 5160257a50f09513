package main

//lint:file-ignore SA1019 a client of an older protocol says where it works

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A harness plays sessions through the bridge.
type harness struct {
	bridge  string            // the program
	before  string            // the one that plays the baseline
	lists   map[string]string // files with what servers list, by the name that sessions use
	scratch string
}

// A setting is one way to configure the bridge.
type setting struct {
	Name     string
	Template string // a builtin template, or ""
	Baseline bool   // what was the default before: everything asks that is not only read
}

// A stage is a session with its folders, its servers and its configuration.
type stage struct {
	session
	dir, workspace, config, log string
	bridge                      string
}

// stage makes the folders of a session, and the configuration of a setting.
func (h *harness) stage(ctx context.Context, s session, with setting) (*stage, error) {
	dir, err := os.MkdirTemp(h.scratch, "s")
	if err != nil {
		return nil, err
	}
	st := &stage{dir: dir, workspace: filepath.Join(dir, "project"), config: filepath.Join(dir, "bridge.json"),
		log: filepath.Join(dir, "received.jsonl"), bridge: h.bridge}
	if with.Baseline {
		st.bridge = h.before
	}
	outside := filepath.Join(dir, "outside")
	if st.session, err = s.in(st.workspace, outside); err != nil {
		return nil, err
	}
	if err := st.lay(st.workspace, outside); err != nil {
		return nil, err
	}
	book, err := st.playbook(st.log, h.lists)
	if err != nil {
		return nil, err
	}
	if err := putNpx(st.bin(), book); err != nil {
		return nil, err
	}
	return st, st.configure(ctx, with)
}

func (st *stage) bin() string { return filepath.Join(st.dir, "bin") }

// putNpx puts this program as npx into a folder, with what it plays.
func putNpx(dir string, book playbook) error {
	text, err := json.Marshal(book)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, playbookName), text, 0o600); err != nil {
		return err
	}
	name := filepath.Join(dir, "npx")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if os.Link(self, name) == nil {
		return nil
	}
	program, err := os.ReadFile(self) // on another file system
	if err != nil {
		return err
	}
	return os.WriteFile(name, program, 0o700)
}

// configure writes the configuration: what init makes of a client's servers, or the
// baseline.
func (st *stage) configure(ctx context.Context, with setting) error {
	if with.Baseline {
		text, err := json.Marshal(map[string]any{"servers": st.launched(), "evaluation": map[string]any{
			"defaultProfile": "supervised", "profiles": map[string]any{"supervised": map[string]any{"default": "risk"}}}})
		if err != nil {
			return err
		}
		return os.WriteFile(st.config, text, 0o600)
	}
	client := filepath.Join(st.dir, "client.json")
	text, err := json.Marshal(map[string]any{"mcpServers": st.launched()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(client, text, 0o600); err != nil {
		return err
	}
	// In a box a package is fetched from the registry, and no stand-in is started.
	args := []string{"init", "--config", st.config, "--from", client, "--yes", "--accept-known", "--no-confine"}
	if with.Template != "" {
		args = append(args, "--template", with.Template)
	}
	if out, err := st.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s with %s: %q: %w\n%s", st.Name, with.Name, args, err, out)
	}
	return nil
}

// launched returns the servers of a session as a client's configuration has them.
func (s session) launched() map[string]server {
	all := map[string]server{}
	for name, one := range s.Servers {
		one.List = ""
		all[name] = one
	}
	return all
}

// command is the bridge with its files in the stage's folder, and the stage's npx.
func (st *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, st.bridge, args...)
	c.Dir = st.workspace
	home := filepath.Join(st.dir, "home")
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "CODEMODE_") && name != "HOME" && name != "PATH" {
			c.Env = append(c.Env, pair)
		}
	}
	c.Env = append(c.Env, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_STATE_HOME="+filepath.Join(home, "state"),
		"XDG_CACHE_HOME="+filepath.Join(home, "cache"), "PATH="+st.bin()+string(os.PathListSeparator)+os.Getenv("PATH"))
	return c
}

// A window is a client with its session. The windows of a stage share a bridge, and
// its servers, as an editor's do.
type window struct {
	*mcp.ClientSession
	stage  *stage
	stderr bytes.Buffer
	from   int64 // how much of the log was there before

	mu      sync.Mutex
	answers func(*mcp.ElicitParams) (*mcp.ElicitResult, dialog, error)
	dialogs []dialog
	failed  error
}

// patience bounds what one window does.
const patience = 2 * time.Minute

// open opens a window. newest makes it speak the protocol without sessions.
func (st *stage) open(ctx context.Context, newest bool) (*window, error) {
	w := &window{stage: st}
	run := st.command(ctx, "run", "--config", st.config)
	run.Stderr = &w.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "asking", Version: "1.0.0"}, &mcp.ClientOptions{ElicitationHandler: w.asked})
	client.AddRoots(&mcp.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(st.workspace)}).String()})
	protocol := &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	if newest {
		protocol = nil
	}
	var err error
	if w.ClientSession, err = client.Connect(ctx, &mcp.CommandTransport{Command: run}, protocol); err != nil {
		return nil, fmt.Errorf("%s: connecting: %w\n%s", st.Name, err, w.stderr.String())
	}
	if _, w.from, err = readLog(st.log, 0); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// asked answers a question, as the window's person does at this time.
func (w *window) asked(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	result, d, err := w.answers(r.Params)
	w.dialogs = append(w.dialogs, d)
	if err != nil {
		w.failed = err
		return nil, err
	}
	return result, nil
}

// sent returns the calls that the servers received since the window was opened.
func (w *window) sent() ([]received, error) {
	all, _, err := readLog(w.stage.log, w.from)
	return all, err
}

// An outcome is what became of a script.
type outcome struct {
	Dialogs []dialog
	Sent    []received
	Error   string // why the script ended early, or ""
}

// eval runs a script, and answers its questions in the given way.
func (w *window) eval(ctx context.Context, code string, answers func(*mcp.ElicitParams) (*mcp.ElicitResult, dialog, error)) (outcome, error) {
	before, err := w.sent()
	if err != nil {
		return outcome{}, err
	}
	w.mu.Lock()
	w.answers, w.dialogs = answers, nil
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := w.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}})
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w\n%s\n%s\n%s", w.stage.Name, err, code, lastLines(w.stderr.String()), w.stage.lastWords())
	}
	after, err := w.sent()
	if err != nil {
		return outcome{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return outcome{}, w.failed
	}
	o := outcome{Dialogs: w.dialogs, Sent: after[len(before):]}
	if result.IsError {
		o.Error = said(result)
	}
	return o, nil
}

// said returns the text of a result.
func said(r *mcp.CallToolResult) string {
	var all strings.Builder
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			io.WriteString(&all, text.Text)
		}
	}
	return all.String()
}

// lastWords returns what bridges in the background wrote when they ended: why one
// ended that should not have.
func (st *stage) lastWords() string {
	files, err := filepath.Glob(filepath.Join(st.dir, "home", "state", "codemode-bridge", "windows", "*.err"))
	if err != nil {
		return err.Error()
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		all.Write(text)
	}
	return all.String()
}

// lastLines returns the end of a log.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
