//go:build real

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A registry is an npm registry on this machine with the release in it.
type registry struct{ url, pnpm string }

// newRegistry starts a registry, and publishes the release as a maintainer would.
func newRegistry(t *testing.T, r *real) registry {
	t.Helper()
	folder, dir := filepath.Join(r.npm, "registry"), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, "config.yaml"), `
storage: `+filepath.Join(dir, "storage")+`
packages: {"**": {access: $all, publish: $all}}
web: {enable: false}
max_body_size: 200mb
log: {type: stdout, format: json, level: warn}
`)
	cmd := exec.Command("node", filepath.Join(folder, "node_modules", "verdaccio", "bin", "verdaccio"), "--config", filepath.Join(dir, "config.yaml"), "--listen", address)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &said, &said, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("ending the registry: %v", err)
		}
		<-ended
		if t.Failed() {
			t.Logf("the registry said:\n%s", said.String())
		}
	})
	g := registry{url: "http://" + address + "/", pnpm: filepath.Join(folder, "node_modules", "pnpm", "bin", "pnpm.cjs")}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(g.url + "-/ping")
		if err == nil {
			answer.Body.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the registry ended: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
	}
	_, platform := hostPlatform()
	h := newNPMHome(t, g)
	for _, name := range []string{"codemode-bridge-" + platform, "codemode-bridge"} {
		h.must(t, "npm", "publish", "--access", "public", "--tag", "latest", filepath.Join(r.released(t), name+"-"+releaseVersion+".tgz"))
	}
	return g
}

// An npmHome is a person who has Node and nothing else, and a configuration with one
// server of the bridge's own.
type npmHome struct {
	dir string
	env []string
}

func newNPMHome(t *testing.T, g registry) *npmHome {
	t.Helper()
	h := &npmHome{dir: t.TempDir()}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(strings.ToLower(name), "npm_") && !strings.HasPrefix(name, "XDG_") && name != "HOME" {
			h.env = append(h.env, entry)
		}
	}
	h.env = append(h.env, "HOME="+h.dir, "NO_UPDATE_NOTIFIER=1")
	mustWrite(t, filepath.Join(h.dir, ".npmrc"), "registry="+g.url+"\n//"+strings.TrimPrefix(g.url, "http://")+":_authToken=nobody\nfund=false\naudit=false\n")
	config := filepath.Join(h.dir, ".config", "codemode-bridge")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(config, "config.json"), `{"servers": {"utils": {"type": "builtin", "builtin": "utils"}}}`)
	return h
}

// A said is what a program printed, and how it ended.
type said struct {
	out, err string
	exit     error
}

// run runs a program in a folder of the home.
func (h *npmHome) run(t *testing.T, folder, program string, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(h.dir, folder), h.env, 5*time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return said{out.String(), errs.String(), err}
}

// must runs a program that must succeed, and returns its standard output.
func (h *npmHome) must(t *testing.T, program string, args ...string) string {
	t.Helper()
	s := h.run(t, ".", program, args...)
	if s.exit != nil {
		t.Fatalf("%s %q: %v\n%s\n%s", program, args, s.exit, s.out, s.err)
	}
	return s.out
}

// command is a client's way to start a bridge.
func (h *npmHome) command(command ...string) clientJob {
	j := clientJob{Command: command, Env: map[string]string{}, Steps: []clientStep{evalStep(`return await codemode.utils__base64_encode({text: "hi"})`, nil)}}
	for _, entry := range h.env {
		name, value, _ := strings.Cut(entry, "=")
		j.Env[name] = value
	}
	return j
}

// hostile makes a folder, as of a repository, that wants to be run in place of the bridge.
func (h *npmHome) hostile(t *testing.T) (folder, caught string) {
	t.Helper()
	folder, caught = filepath.Join(h.dir, "hostile"), filepath.Join(h.dir, "caught")
	bin := filepath.Join(folder, "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	trap := "#!/bin/sh\necho \"$0\" >> " + caught + "\nexit 1\n"
	for _, name := range []string{filepath.Join(folder, "trap"), filepath.Join(bin, "sh"), filepath.Join(bin, "node"), filepath.Join(bin, "npx"), filepath.Join(bin, "codemode-bridge"), filepath.Join(bin, "codemode-worker")} {
		if err := os.WriteFile(name, []byte(trap), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, filepath.Join(folder, "package.json"), `{"name": "codemode-bridge", "version": "`+releaseVersion+`", "bin": {"codemode-bridge": "trap"}}`)
	mustWrite(t, filepath.Join(folder, ".npmrc"), "script-shell=./trap\nregistry=http://127.0.0.1:1/\n")
	return folder, caught
}

// With nothing but Node, a published release works in every way that people install npm
// packages, and ends as the program itself does.
func TestRealLauncher(t *testing.T) {
	r := newReal(t)
	g := newRegistry(t, r)
	version := regexp.MustCompile(`^codemode-bridge ` + regexp.QuoteMeta(releaseVersion) + ` \(go`)
	encoded := `"aGk="`

	t.Run("npx", func(t *testing.T) {
		h := newNPMHome(t, g)
		a := r.client(t, "sdk", h.command("npx", "-y", "codemode-bridge", "run", "--alone"))
		if got := a.Steps[0].value(t, "eval"); !strings.Contains(got, encoded) || a.Server.Version != releaseVersion {
			t.Errorf("version %q returned %s", a.Server.Version, got)
		}

		// npx puts node_modules/.bin of where it is called before the PATH; the bridge and
		// its servers do without.
		bin := filepath.Join(h.dir, "node_modules", ".bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "only-here"), []byte("#!/bin/sh\ntouch $HOME/caught\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(h.dir, "planted.json"), `{"servers": {"planted": {"command": "only-here"}}}`)
		s := h.run(t, ".", "npx", "-y", "codemode-bridge", "servers", "test", "planted", "-c", "planted.json")
		if s.exit == nil || !strings.Contains(s.out+s.err, `no folder of the PATH has "only-here"`) {
			t.Errorf("a program of node_modules/.bin: %+v", s)
		}

		// What install writes works without the cache, without Node, and in a folder that
		// npx must not be called in.
		h.must(t, "npx", "-y", "codemode-bridge", "install", "claude-code", "--yes")
		entry := h.entry(t)
		if strings.Contains(entry.Command, "_npx") || !filepath.IsAbs(entry.Command) {
			t.Fatalf("install wrote %q", entry.Command)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, ".npm")); err != nil {
			t.Fatal(err)
		}
		hostile, caught := h.hostile(t)
		j := h.command("/bin/sh", "-c", `cd "$0" && exec "$@"`, hostile, entry.Command)
		j.Command = append(append(j.Command, entry.Args...), "--alone")
		j.Env["PATH"] = "/usr/bin:/bin"
		if got := r.client(t, "sdk", j).Steps[0].value(t, "eval"); !strings.Contains(got, encoded) {
			t.Errorf("the client's entry returned %s", got)
		}
		if text, err := os.ReadFile(caught); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder's own programs were started: %s (%v)", text, err)
		}
		// The traps do catch: this is why install writes no npx.
		h.run(t, "hostile", "npx", "--prefix", h.dir, "-y", "codemode-bridge", "version")
		if _, err := os.Stat(caught); err != nil {
			t.Errorf("npx started none of them: %v", err)
		}
	})

	t.Run("npm global", func(t *testing.T) {
		h := newNPMHome(t, g)
		h.must(t, "npm", "install", "-g", "--prefix", filepath.Join(h.dir, "global"), "codemode-bridge")
		program := filepath.Join(h.dir, "global", "bin", "codemode-bridge")
		if got := h.must(t, program, "version"); !version.MatchString(got) {
			t.Errorf("version says %q", got)
		}
		// An installed program stays where it is.
		h.must(t, program, "install", "claude-code", "--yes")
		if entry := h.entry(t); !strings.HasPrefix(entry.Command, filepath.Join(h.dir, "global", "lib")) {
			t.Errorf("install wrote %q", entry.Command)
		}

		for code, args := range map[int][]string{0: {"eval", "return 1"}, 1: {"eval", "throw new Error('no')"}, 2: {"nonsense"}, 3: {"check", "-c", "nosuch.json"}} {
			if s := h.run(t, ".", program, args...); exitCodeOf(s.exit) != code {
				t.Errorf("%q ended with %v, want exit code %d\n%s", args, s.exit, code, s.err)
			}
		}
		long := strings.Repeat("é", 30_000)
		if s := h.run(t, ".", program, "eval", `return "é".repeat(30000)`); strings.Trim(strings.TrimSpace(s.out), `"`) != long {
			t.Errorf("a long answer has %d bytes: %.80q %v", len(s.out), s.out, s.exit)
		}
		h.signals(t, program)
	})

	t.Run("without the optional package", func(t *testing.T) {
		h := newNPMHome(t, g)
		h.must(t, "npm", "install", "--omit=optional", "codemode-bridge")
		program := filepath.Join(h.dir, "node_modules", ".bin", "codemode-bridge")
		_, platform := hostPlatform()
		refuses := func(what, program string, args []string, want ...string) {
			t.Helper()
			s := h.run(t, ".", program, args...)
			for _, w := range want {
				if exitCodeOf(s.exit) != 1 || s.out != "" || !strings.Contains(s.err, w) || strings.Contains(s.err, "    at ") {
					t.Errorf("%s: %v, want %q\n%s%s", what, s.exit, w, s.out, s.err)
				}
			}
		}
		again := "npm install --include=optional codemode-bridge@" + releaseVersion
		refuses("left out", program, []string{"version"}, "the package @codemode-bridge/"+platform+" is not installed", "--omit=optional", again)

		launcher := filepath.Join(h.dir, "node_modules", "codemode-bridge", "bin", "codemode-bridge.js")
		as := func(system string) []string {
			return []string{"-e", `Object.defineProperty(process, "platform", {value: "` + system + `"}); require("` + launcher + `")`}
		}
		refuses("a system without a package", "node", as("sunos"), "there is no package for sunos on ", "go build")

		for name, about := range map[string]string{"win32-arm64": `{"version": "` + releaseVersion + `"}`, platform: `{"version": "1.0.0"}`} {
			folder := filepath.Join(h.dir, "node_modules", "@codemode-bridge", name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, filepath.Join(folder, "package.json"), about)
			if name == platform {
				refuses("another version", program, []string{"version"}, platform+" beside it is 1.0.0", again)
			} else {
				refuses("of another system", program, []string{"version"}, "what is installed is @codemode-bridge/win32-arm64", again)
			}
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("pnpm", func(t *testing.T) {
		h := newNPMHome(t, g)
		h.must(t, "node", g.pnpm, "add", "codemode-bridge")
		program := filepath.Join(h.dir, "node_modules", ".bin", "codemode-bridge")
		if got := h.must(t, program, "version"); !version.MatchString(got) {
			t.Errorf("version says %q", got)
		}
		if got := h.must(t, program, "eval", "return await codemode.utils__base64_encode({text: 'hi'})"); !strings.Contains(got, "aGk=") {
			t.Errorf("eval says %q", got)
		}
	})
}

// entry is what Claude Code starts as the bridge.
func (h *npmHome) entry(t *testing.T) (entry struct {
	Command string
	Args    []string
}) {
	t.Helper()
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(h.dir, ".claude.json"))), &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file.Servers["codemode"], &entry); err != nil {
		t.Fatal(err)
	}
	return entry
}

func exitCodeOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -2
	}
	return 0
}

// signals checks that a signal to the launcher reaches the bridge, and that the launcher
// ends as the bridge does.
func (h *npmHome) signals(t *testing.T, program string) {
	for _, row := range []struct {
		name   string
		to     func(launcher, bridge int) int
		signal syscall.Signal
		ended  func(syscall.WaitStatus) bool
	}{
		{"an interrupt", func(launcher, _ int) int { return launcher }, syscall.SIGINT, func(s syscall.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 130 }},
		{"a request to end", func(launcher, _ int) int { return launcher }, syscall.SIGTERM, func(s syscall.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 130 }},
		{"a bridge that is killed", func(_, bridge int) int { return bridge }, syscall.SIGKILL, func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL }},
	} {
		cmd := exec.Command(program, "eval", "console.log('here'); while (true) await new Promise(r => setTimeout(r, 50))")
		cmd.Dir, cmd.Env = h.dir, h.env
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bridge := childOf(t, cmd.Process.Pid)
		if err := syscall.Kill(row.to(cmd.Process.Pid, bridge), row.signal); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !row.ended(status) {
			t.Errorf("%s: the launcher ended with %v\n%s", row.name, err, errs.String())
		}
		if err := syscall.Kill(bridge, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: the bridge is still there (%v)", row.name, err)
		}
	}
}

// childOf waits until a process has a child with a child of its own, a bridge with its
// worker, and returns it.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	children := func(pid int) (all []int) {
		for child, parent := range parents(t) {
			if parent == pid {
				all = append(all, child)
			}
		}
		return all
	}
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, bridge := range children(pid) {
			if len(children(bridge)) > 0 {
				return bridge
			}
		}
	}
	t.Fatalf("process %d starts no bridge", pid)
	return 0
}

// parents are the processes of this machine, each with its parent: from /proc, or where
// there is none, from ps.
func parents(t *testing.T) map[int]int {
	t.Helper()
	all := map[int]int{}
	add := func(pid, parent string) {
		child, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if all[child], err = strconv.Atoi(parent); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name of the program, in parentheses, may have any characters.
		add(filepath.Base(filepath.Dir(file)), strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[1])
	}
	if len(all) > 0 {
		return all
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			add(f[0], f[1])
		}
	}
	return all
}
