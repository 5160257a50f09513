//go:build real

package main_test

// make test-real: the real binary between real upstream servers (the npm reference
// servers, and testdata/real/watch.mjs, which reports what reaches it) and the real
// TypeScript clients, in both protocol eras, over stdio and HTTP. .ci/real-install puts
// what is needed into .cache/real.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// canary is in the bridge's environment and must reach no upstream.
const canary = "REAL_TEST_CANARY"

// A real is what one test works with: binaries, npm packages, a folder for the filesystem
// server, and a configuration with all upstreams.
type real struct {
	bin, npm, files, config string
	env                     []string
}

// installedOnce is the folder of the npm packages, with our modules in it: Node resolves
// imports from a module's own folder, so they have to be beside node_modules.
var installedOnce = sync.OnceValues(func() (npm string, err error) {
	if npm = os.Getenv("REAL_CACHE"); npm == "" {
		npm = filepath.Join("..", "..", ".cache", "real")
	}
	if npm, err = filepath.Abs(npm); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(npm, "installed.json")); err != nil {
		return "", fmt.Errorf("the npm packages are not installed, run make test-real: %w", err)
	}
	for _, name := range []string{"client.mjs", "login.mjs", "watch.mjs", "reach.mjs"} {
		source, err := os.ReadFile(filepath.Join("testdata", "real", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(npm, name), source, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	return npm, nil
})

func newReal(t *testing.T) *real {
	t.Helper()
	npm, err := installedOnce()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	r := &real{bin: filepath.Join(realPrograms(t), "codemode-bridge"), npm: npm, files: t.TempDir(), config: filepath.Join(home, "config.json")}
	r.env = append(os.Environ(),
		"HOME="+home,
		"XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_STATE_HOME="+filepath.Join(home, "state"),
		"XDG_CACHE_HOME="+filepath.Join(home, "cache"), canary+"=secret")

	mustWrite(t, filepath.Join(r.files, "hello.txt"), "hello from a file\n")
	server := func(pkg string) string {
		return filepath.Join(npm, "node_modules", "@modelcontextprotocol", pkg, "dist", "index.js")
	}
	type stdio struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env,omitempty"`
		Dir     string            `json:"cwd,omitempty"`
	}
	config, err := json.Marshal(map[string]any{"servers": map[string]stdio{
		"everything": {Command: "node", Args: []string{server("server-everything")}},
		"filesystem": {Command: "node", Args: []string{server("server-filesystem"), r.files}},
		"memory": {Command: "node", Args: []string{server("server-memory")},
			Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(home, "memory.jsonl")}},
		// As most people start servers: npx, a shell, then node. The process that we
		// start is not the one that we talk to.
		"watch": {Command: "npx", Args: []string{"--no", "-c", "node watch.mjs"}, Dir: npm},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(config))
	return r
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bridge runs a subcommand to its end and returns its standard output.
func (r *real) bridge(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.bin, args...)
	cmd.Env = r.env
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("codemode-bridge %s: %v\nstdout: %s\nstderr: %s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// serve starts the HTTP server and returns the address of its endpoint. At the end of the
// test it is interrupted, and must exit as it should.
func (r *real) serve(t *testing.T) string {
	t.Helper()
	return r.serveAt(t, "127.0.0.1:0")
}

// serveAt is serve at an address.
func (r *real) serveAt(t *testing.T, address string) string {
	t.Helper()
	cmd := exec.Command(r.bin, "serve", "--config", r.config, "--listen", address)
	cmd.Env = r.env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	endpoint := make(chan string, 1)
	var log bytes.Buffer // only the reader may use it until drained is closed
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer close(endpoint)
		found := false
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			log.WriteString(line)
			if url := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/mcp`).FindString(line); url != "" && !found {
				found = true
				endpoint <- url
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Errorf("interrupting serve: %v", err)
		}
		<-drained
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 0) {
			t.Errorf("serve ended with %v after an interrupt", err)
		}
		if t.Failed() {
			t.Logf("serve said:\n%s", log.String())
		}
	})
	select {
	case url, ok := <-endpoint:
		if !ok {
			t.Fatal("serve ended before it named its endpoint")
		}
		return url
	case <-time.After(3 * time.Minute):
		t.Fatal("serve did not name its endpoint")
		return ""
	}
}

// What client.mjs reads and writes; the comment in that file explains the fields.
type (
	clientJob struct {
		Command []string          `json:"command,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		URL     string            `json:"url,omitempty"`
		Token   string            `json:"token,omitempty"`
		Steps   []clientStep      `json:"steps"`
		// Decision, if set, is what the person at the client answers; Answers
		// are fields beside it.
		Decision string         `json:"decision,omitempty"`
		Answers  map[string]any `json:"answers,omitempty"`
		// Model, if set, is what the client's model answers.
		Model string `json:"model,omitempty"`
		Logs  string `json:"logs,omitempty"` // the level that the client wants
	}
	clientStep struct {
		Op        string         `json:"op"`
		Name      string         `json:"name,omitempty"`
		Arguments map[string]any `json:"arguments,omitempty"`
		Progress  bool           `json:"progress,omitempty"`
		Cancel    string         `json:"cancel,omitempty"`
		Steps     []clientStep   `json:"steps,omitempty"`
	}
	clientAnswer struct {
		Protocol string `json:"protocol"`
		Server   struct{ Name, Version string }
		Steps    []clientDone `json:"steps"`
		Asked    []string     `json:"asked"`
		Lent     []struct {
			SystemPrompt string `json:"systemPrompt"`
		} `json:"lent"`
		Logged []clientLog `json:"logged"`
	}
	clientLog  struct{ Level, Logger, Data string }
	clientDone struct {
		Result struct {
			Tools             []clientTool    `json:"tools"`
			Content           []clientContent `json:"content"`
			StructuredContent json.RawMessage `json:"structuredContent"`
			IsError           bool            `json:"isError"`
		} `json:"result"`
		Error    *struct{ Name, Message string } `json:"error"`
		Invalid  string                          `json:"invalid"`
		Progress []struct {
			Progress float64 `json:"progress"`
			Message  string  `json:"message"`
		} `json:"progress"`
		Steps []clientDone `json:"steps"`
	}
	clientTool struct {
		Name, Description string
		OutputSchema      json.RawMessage
	}
	clientContent struct{ Type, Text, Data, MimeType string }
)

// evalStep is a step that runs a script.
func evalStep(code string, input any) clientStep {
	args := map[string]any{"code": code}
	if input != nil {
		args["input"] = input
	}
	return clientStep{Op: "call", Name: "eval", Arguments: args}
}

// text joins the text of an answer.
func (d clientDone) text() string {
	var all []string
	for _, c := range d.Result.Content {
		if c.Type == "text" {
			all = append(all, c.Text)
		}
	}
	return strings.Join(all, "\n")
}

// value returns what the script of an eval step returned, and checks that text and
// structured content agree.
func (d clientDone) value(t *testing.T, what string) string {
	t.Helper()
	if d.Error != nil || d.Result.IsError {
		t.Errorf("%s: failed: %+v %s", what, d.Error, d.text())
		return ""
	}
	var structured struct {
		Result json.RawMessage `json:"result"`
		Run    string          `json:"run"`
	}
	if err := json.Unmarshal(d.Result.StructuredContent, &structured); err != nil {
		t.Errorf("%s: structured content %s: %v", what, d.Result.StructuredContent, err)
	}
	if structured.Run == "" {
		t.Errorf("%s: the answer names no run", what)
	}
	if len(d.Result.Content) == 0 || !sameJSON(d.Result.Content[0].Text, string(d.Result.StructuredContent)) {
		t.Errorf("%s: text %q, structured content %s", what, d.text(), d.Result.StructuredContent)
	}
	return string(structured.Result)
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// client runs one real client through its steps.
func (r *real) client(t *testing.T, kind string, j clientJob) clientAnswer {
	t.Helper()
	in, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "client.mjs", kind)
	cmd.Dir = r.npm
	cmd.Env = r.env
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("client %s: %v\n%s", kind, err, stderr.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("client %s said:\n%s", kind, stderr.String())
		}
	})
	var a clientAnswer
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("client %s answered %s: %v", kind, out, err)
	}
	if len(a.Steps) != len(j.Steps) {
		t.Fatalf("client %s answered %d of %d steps", kind, len(a.Steps), len(j.Steps))
	}
	return a
}

// job starts a bridge, or says how the client is to start one.
func (r *real) job(t *testing.T, transport string) clientJob {
	t.Helper()
	if transport == "http" {
		return clientJob{URL: r.serve(t)}
	}
	j := clientJob{Command: []string{r.bin, "run", "--config", r.config}, Env: make(map[string]string)}
	for _, entry := range r.env {
		name, value, _ := strings.Cut(entry, "=")
		j.Env[name] = value
	}
	return j
}

func TestRealClients(t *testing.T) {
	protocols := map[string]string{"sdk": "2025-11-25", "legacy": "2025-11-25", "modern": "2026-07-28"}
	for _, kind := range []string{"sdk", "legacy", "modern"} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(kind+"/"+transport, func(t *testing.T) {
				r := newReal(t)
				// As at every start but the first, there is a cached catalogue.
				r.bridge(t, "", "tools", "list", "--config", r.config)
				j := r.job(t, transport)
				// Every row is a step with its check.
				rows := scenario(r)
				for _, row := range rows {
					j.Steps = append(j.Steps, row.step)
				}
				a := r.client(t, kind, j)
				if a.Protocol != protocols[kind] {
					t.Errorf("agreed on protocol %q, want %q", a.Protocol, protocols[kind])
				}
				if !strings.HasPrefix(a.Server.Name, "codemode") || a.Server.Version == "" {
					t.Errorf("the server calls itself %+v", a.Server)
				}
				for i, row := range rows {
					t.Run(row.name, func(t *testing.T) { row.check(t, a.Steps[i]) })
				}
				if transport == "stdio" {
					gone(t, a.Steps[len(a.Steps)-1])
				}
			})
		}
	}
}

// TestRealFirstCall starts the bridge where it never ran before, so that nothing is known
// of the servers until they have answered.
func TestRealFirstCall(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			r := newReal(t)
			j := r.job(t, transport)
			j.Steps = []clientStep{evalStep(`return await codemode.everything__echo({message: "hi"})`, nil)}
			a := r.client(t, "sdk", j)
			if got := a.Steps[0].value(t, "eval"); got != `"Echo: hi"` {
				t.Errorf("returned %s", got)
			}
		})
	}
}

// A realRow is one step of a client with its check.
type realRow struct {
	name  string
	step  clientStep
	check func(t *testing.T, d clientDone)
}

func scenario(r *real) []realRow {
	hello := filepath.Join(r.files, "hello.txt")
	equals := func(want string) func(*testing.T, clientDone) {
		return func(t *testing.T, d clientDone) {
			if got := d.value(t, "eval"); !sameJSON(got, want) {
				t.Errorf("returned %s, want %s", got, want)
			}
		}
	}
	return []realRow{
		{"a call", evalStep(`return (await codemode.everything__echo({message: "hi"}))`, nil),
			equals(`"Echo: hi"`)},
		{"few tools with short descriptions", clientStep{Op: "list"}, func(t *testing.T, d clientDone) {
			var names []string
			for _, tool := range d.Result.Tools {
				names = append(names, tool.Name)
				if tool.Name == "eval" && (len(tool.Description) > 2048 || !strings.Contains(tool.Description, "filesystem (14)")) {
					t.Errorf("%d bytes of description: %s", len(tool.Description), tool.Description)
				}
			}
			for _, want := range []string{"eval", "search_tools", "get_tools"} {
				if !slices.Contains(names, want) {
					t.Errorf("no %s among %q", want, names)
				}
			}
			if len(names) > 5 {
				t.Errorf("%d tools: %q", len(names), names)
			}
		}},
		{"search finds", clientStep{Op: "call", Name: "search_tools", Arguments: map[string]any{"query": "read text file"}},
			func(t *testing.T, d clientDone) {
				if !strings.Contains(d.text(), "filesystem__read_text_file") {
					t.Errorf("found %s", d.text())
				}
			}},
		{"search finds nothing", clientStep{Op: "call", Name: "search_tools", Arguments: map[string]any{"query": "xylophone"}},
			func(t *testing.T, d clientDone) {
				if d.Error != nil || d.Result.IsError || strings.Contains(d.text(), "__") {
					t.Errorf("found %s %+v", d.text(), d.Error)
				}
			}},
		{"a server's tools", clientStep{Op: "call", Name: "get_tools", Arguments: map[string]any{"server": "memory"}},
			func(t *testing.T, d clientDone) {
				if !strings.Contains(d.text(), "memory__create_entities") || strings.Contains(d.text(), "filesystem__") {
					t.Errorf("listed %s", d.text())
				}
			}},
		{"reads a file", evalStep(`const {content} = await codemode.filesystem__read_text_file({path: input.path}); return content`,
			map[string]any{"path": hello}), equals(`"hello from a file\n"`)},
		{"TypeScript, structured content",
			evalStep("type Weather = {temperature: number};\nconst w: Weather = await codemode[\"everything__get-structured-content\"]({location: \"Chicago\"});\nreturn w.temperature as number", nil),
			equals(`36`)},
		{"three servers at once", evalStep(`
			const [echo, made, file] = await Promise.all([
				codemode.everything__echo({message: "one"}),
				codemode.memory__create_entities({entities: [{name: "Ada", entityType: "person", observations: ["writes programs"]}]}),
				codemode.filesystem__write_file({path: input.dir + "/out.txt", content: "written"}),
			]);
			const found = await codemode.memory__search_nodes({query: "Ada"});
			return {echo, made: made.entities.length, found: found.entities[0].name};`, map[string]any{"dir": r.files}),
			func(t *testing.T, d clientDone) {
				equals(`{"echo": "Echo: one", "found": "Ada", "made": 1}`)(t, d)
				if text, err := os.ReadFile(filepath.Join(r.files, "out.txt")); string(text) != "written" {
					t.Errorf("the file says %q, %v", text, err)
				}
			}},
		{"an image", evalStep(`
			const find = (v) => v && typeof v === "object" ? (v.kind === "image" ? v : Object.values(v).map(find).find(Boolean)) : undefined;
			const image = find(await codemode["everything__get-tiny-image"]({}));
			emit(image);
			return image.kind;`, nil),
			func(t *testing.T, d clientDone) {
				equals(`"image"`)(t, d)
				var images int
				for _, c := range d.Result.Content {
					if c.Type == "image" {
						images++
						data, err := base64.StdEncoding.DecodeString(c.Data)
						if err != nil || c.MimeType != "image/png" || !bytes.HasPrefix(data, []byte("\x89PNG")) {
							t.Errorf("emitted %d bytes of %s, %v", len(data), c.MimeType, err)
						}
					}
				}
				if images != 1 {
					t.Errorf("%d images in the answer", images)
				}
			}},
		{"a failing script", evalStep("const a = 1;\nconst b = await codemode.everything__echo({message: \"before\"});\nthrow new Error(\"boom \" + a)", nil),
			func(t *testing.T, d clientDone) {
				if text := d.text(); !d.Result.IsError || !strings.Contains(text, "boom 1") || !strings.Contains(text, "line 3") {
					t.Errorf("answered %v %s", d.Result.IsError, text)
				}
			}},
		{"a misspelt tool", evalStep(`return await codemode.everything__ecko({message: "x"})`, nil),
			func(t *testing.T, d clientDone) {
				if !d.Result.IsError || !strings.Contains(d.text(), "everything__echo") {
					t.Errorf("answered %v %s", d.Result.IsError, d.text())
				}
			}},
		{"a tool's own error is caught", evalStep(`
			try { await codemode.filesystem__read_text_file({path: "/outside"}) }
			catch (e) { return [e.name, e.server, e.message.includes("Access denied")] }`, nil),
			equals(`["ToolError", "filesystem", true]`)},
		{"progress comes through", clientStep{Op: "call", Name: "eval", Progress: true, Arguments: map[string]any{
			"code": `return await codemode["everything__trigger-long-running-operation"]({duration: 0.5, steps: 5})`}},
			func(t *testing.T, d clientDone) {
				d.value(t, "eval")
				if len(d.Progress) == 0 {
					t.Error("no progress")
				}
				for i := 1; i < len(d.Progress); i++ {
					if d.Progress[i].Progress <= d.Progress[i-1].Progress {
						t.Errorf("progress does not increase: %v", d.Progress)
					}
				}
			}},
		{"the client cancels in mid-call", clientStep{Op: "call", Name: "eval", Cancel: "still waiting", Arguments: map[string]any{
			"code": `return await codemode.watch__wait({})`}},
			func(t *testing.T, d clientDone) {
				if d.Error == nil || !strings.Contains(d.Error.Message, "pressed stop") {
					t.Errorf("answered %s %+v", d.text(), d.Error)
				}
			}},
		{"the cancellation reached the upstream", evalStep(`return json(await codemode.watch__aborted({}))`, nil), equals(`1`)},
		{"two scripts at once", clientStep{Op: "together", Steps: []clientStep{
			evalStep(`return (await codemode.everything__echo({message: "left"}))`, nil),
			evalStep(`return (await codemode.everything__echo({message: "right"}))`, nil),
		}}, func(t *testing.T, d clientDone) {
			for i, want := range []string{`"Echo: left"`, `"Echo: right"`} {
				equals(want)(t, d.Steps[i])
			}
		}},
		{"an upstream sees neither the client's _meta nor our environment", evalStep(`return json(await codemode.watch__seen({}))`, nil),
			func(t *testing.T, d clientDone) {
				got := d.value(t, "eval")
				if got == "" || strings.Contains(got, canary) || strings.Contains(got, "clientInfo") {
					t.Errorf("saw %s", got)
				}
			}},
	}
}

// gone checks that the upstream, whose process id the last step asked for, has ended with
// the bridge, although a shell and npx were between them.
func gone(t *testing.T, d clientDone) {
	t.Helper()
	var seen struct{ PID int }
	if err := json.Unmarshal([]byte(d.value(t, "eval")), &seen); err != nil || seen.PID == 0 {
		t.Fatalf("no process id: %v", err)
	}
	process, err := os.FindProcess(seen.PID)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); process.Signal(syscall.Signal(0)) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the grandchild %d outlived the bridge", seen.PID)
		}
	}
}

func TestRealCommandLine(t *testing.T) {
	r := newReal(t)

	t.Run("eval", func(t *testing.T) {
		const script = `const {content} = await codemode.filesystem__list_directory({path: input}); return content.split("\n").length`
		script1 := strings.ReplaceAll(script, "input", fmt.Sprintf("%q", r.files))
		for how, out := range map[string]string{
			"argument": r.bridge(t, "", "eval", "--config", r.config, script1),
			"stdin":    r.bridge(t, script1, "eval", "--config", r.config, "--file", "-"),
		} {
			if strings.TrimSpace(out) != "1" {
				t.Errorf("%s: printed %q", how, out)
			}
		}
	})

	t.Run("servers list", func(t *testing.T) {
		out := r.bridge(t, "", "servers", "list", "--config", r.config, "--json")
		if n := strings.Count(out, `"connected"`); n != 4 {
			t.Errorf("%d of 4 servers connected:\n%s", n, out)
		}
	})

	t.Run("tools search", func(t *testing.T) {
		out := r.bridge(t, "", "tools", "search", "--config", r.config, "read text file")
		if !strings.Contains(out, "filesystem__read_text_file") {
			t.Errorf("printed %s", out)
		}
	})

	t.Run("tools show", func(t *testing.T) {
		out := r.bridge(t, "", "tools", "show", "--config", r.config, "memory__create_entities")
		if !strings.Contains(out, "entityType: string") {
			t.Errorf("printed %s", out)
		}
	})
}
