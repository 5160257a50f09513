package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codemode-bridge/bridge/upstream/npm"
	"codemode-bridge/sandbox/confine"
	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// boxed puts a fake into a box that may write a folder of its own.
func boxed(t testing.TB, s script) (spec Spec, folder string) {
	t.Helper()
	if off := whole(); off != "" {
		t.Skip("not all of a box holds here: ", off)
	}
	folder, err := os.MkdirTemp("/var/tmp", "box") // a box has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	spec = s.stdio(t)
	spec.Env["FAKE_FOLDER"] = folder
	spec.Box = &Box{Box: confine.Box{Write: []string{folder}}, Launcher: racing.Program()}
	return spec, folder
}

// whole says what of a box does not hold on this machine; empty if all of it does. Whether
// it should hold is for the tests of package confine.
var whole = sync.OnceValue(func() string {
	if os.Getenv(withoutNamespaces) != "" {
		return "" // that is what is tested
	}
	p, err := confine.Box{}.Start(racing.Program(), func() *exec.Cmd { return exec.Command("/bin/true") })
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	if err := p.Cmd.Wait(); err != nil {
		return err.Error()
	}
	for _, step := range []confine.Step{confine.Files, confine.Processes, confine.Network, confine.Landlock, confine.Powers, confine.Calls} {
		if !p.Steps.On(step) {
			return string(step) + ": " + p.Steps[step]
		}
	}
	return ""
})

// left returns the processes of the server with this folder, without the launchers: those
// show their environment to root alone.
func left(folder string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || bytes.HasSuffix(line, []byte("\x00box\x00")) {
			continue
		}
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte("FAKE_FOLDER="+folder)) {
			pids = append(pids, len(pids))
		}
	}
	return pids
}

// A server in a box works as one without does, and what holds it is known while it runs.
func TestAServerInABox(t *testing.T) {
	spec, folder := boxed(t, script{})
	spec.IdleStop = 50 * time.Millisecond
	s := open(t, Options{}, spec)
	ready(t, s)
	for range 2 { // started by a call, the second time
		eventually(t, "known to be in a box", func() bool {
			if got := call(t, s, "exact", ""); got != exact {
				t.Errorf("got %s", got)
			}
			st := s.Status()[0]
			if st.Box == nil {
				return false // it was stopped before we looked
			}
			if diff := cmp.Diff(&Boxed{Box: spec.Box.Box, Steps: st.Box.Steps, Held: confine.Hold{Writes: true, Reads: true, Net: true}}, st.Box); diff != "" || st.PID == 0 {
				t.Errorf("status %+v: %s", st, diff)
			}
			return true
		})
		if st := is(t, s, Idle); st.Box != nil {
			t.Errorf("without a child: %+v", st.Box)
		}
		eventually(t, "gone", func() bool { return len(left(folder)) == 0 })
	}
}

// A server in a box is stopped as one without is, and nothing of it stays.
func TestNothingIsLeftOfABox(t *testing.T) {
	for start, processes := range map[string]int{"stubborn": 1, "family": 2, "orphans": 2} {
		t.Run(start, func(t *testing.T) {
			spec, folder := boxed(t, script{})
			spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"`+start+":"+folder+`/pids"`, 1)
			s := open(t, Options{}, spec)
			connected(t, s)
			if n := len(left(folder)); n < processes {
				t.Fatalf("%d processes, want at least %d", n, processes)
			}
			s.Close()
			eventually(t, "ended", func() bool { return len(left(folder)) == 0 })
		})
	}
}

// A server in a box is asked to end before it is killed.
func TestAServerInABoxIsAskedToEnd(t *testing.T) {
	spec, folder := boxed(t, script{})
	asked := filepath.Join(folder, "asked")
	spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"slowly:`+asked+`"`, 1)
	s := open(t, Options{}, spec)
	connected(t, s)
	s.Close()
	if _, err := os.Stat(asked); err != nil {
		t.Error("it was not asked: ", err)
	}
}

// A server gets a new box when its box is another one, and each session has its own.
func TestBoxesOfSessionsAndReloads(t *testing.T) {
	spec, folder := boxed(t, script{})
	spec.PerSession = true
	s := open(t, Options{}, spec)
	connected(t, s)
	for _, session := range []string{"a", "b"} {
		if _, err := s.Call(WithClient(t.Context(), &member{session: session}), "fake", "", "exact", nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(left(folder)); n != 3 {
		t.Errorf("%d processes, want one for each of two sessions and one for listing", n)
	}
	s.mu.Lock()
	own := s.owned[owner{session: "a", server: "fake"}]
	s.mu.Unlock()
	own.mu.Lock()
	own.session.process.boxed.Held.Net = false
	own.mu.Unlock()
	if b := s.Boxed("fake"); b == nil || !b.Held.Writes || !b.Held.Reads || b.Held.Net {
		t.Errorf("what holds all of its children: %+v", b)
	}
	s.EndSession("a")
	eventually(t, "ended with its session", func() bool { return len(left(folder)) == 2 })
	before := s.Status()[0].PID
	same := spec
	same.Box = new(*spec.Box)
	s.Apply([]Spec{same})
	if now := s.Status()[0].PID; now != before {
		t.Error("an equal box restarted the server")
	}
	wider := same
	wider.Box = new(*spec.Box)
	wider.Box.Net.Any = true
	s.Apply([]Spec{wider})
	connected(t, s)
	eventually(t, "in its new box", func() bool { b := s.Status()[0].Box; return b != nil && b.Box.Net.Any && !b.Held.Net })
	eventually(t, "without the old ones", func() bool { return len(left(folder)) == 1 })
}

// What keeps a server from starting in its box is said, with the way out.
func TestABoxThatIsTooSmall(t *testing.T) {
	outside, err := os.MkdirTemp("/var/tmp", "outside")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(outside)
	canary := filepath.Join(outside, "canary")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, row := range map[string]struct {
		start string
		edit  func(*Box)
		want  []string
	}{
		"a write outside": {"write:" + canary, nil, []string{canary, "may have kept it from writing " + canary, "codemode-bridge servers allow fake --write " + outside}},
		"a name":          {"dial:api.example.com:443", nil, []string{"writes ", "no network", "servers allow fake --net"}},
		"another name": {"dial:evil.example.com:443", func(b *Box) { b.Net.Hosts = []confine.Host{{Name: "api.example.com", Port: 443}} },
			[]string{"may have kept it from reaching evil.example.com", "servers allow fake --net evil.example.com"}},
		"this machine":      {"dial:" + l.Addr().String(), nil, []string{"connection refused", "from reaching the network", "--net HOST"}},
		"a missing folder":  {"", func(b *Box) { b.Write = []string{outside + "/none"} }, []string{"may write " + outside + "/none, which is not there", "take it out of confine.write"}},
		"a wrong box":       {"", func(b *Box) { b.Wrong = "it has the workspace: set it" }, []string{"it has the workspace: set it"}},
		"a missing program": {"", func(b *Box) { b.Run = []string{"no-such-program"} }, []string{"its box may run no-such-program"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, folder := boxed(t, script{})
			spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"`+row.start+`"`, 1)
			if row.edit != nil {
				row.edit(spec.Box)
			}
			var log lockedText
			s := open(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, spec)
			ready(t, s)
			st := s.Status()[0]
			for _, want := range row.want {
				if !strings.Contains(st.Err, want) {
					t.Errorf("the error does not say %q: %s", want, st.Err)
				}
			}
			s.Close()
			if n := left(folder); len(n) > 0 {
				t.Errorf("left: %v", n)
			}
		})
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("it wrote outside its box")
	}
}

// A tool that fails where its box ends says so in its own words; what would let it go on
// is said beside them.
func TestAnErrorAtTheEndOfABox(t *testing.T) {
	outside, err := os.MkdirTemp("/var/tmp", "outside")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(outside)
	spec, _ := boxed(t, script{})
	s := open(t, Options{}, spec)
	connected(t, s)
	inside := spec.Box.Write[0]
	for text, want := range map[string]string{
		"EROFS: read-only file system, open '" + outside + "/new'":      "from writing " + outside + "/new; if it needs more: codemode-bridge servers allow fake --write " + outside,
		"Access denied - path outside allowed directories: " + outside:  "from reading " + outside + "; if it needs more: codemode-bridge servers allow fake --read " + outside,
		"ENOENT: no such file or directory, open '" + inside + "/none'": "",
		"there is no such issue": "",
	} {
		got := s.Beyond("fake", text)
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := s.Beyond("nobody", "EROFS "+outside); got != "" {
		t.Errorf("of no server: %q", got)
	}
}

// A host that a box names is reached through the relay, which ends with the server.
func TestABoxReachesItsHosts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	spec, _ := boxed(t, script{})
	spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"dial:`+l.Addr().String()+`"`, 1)
	spec.Box.Net.Hosts = []confine.Host{{Name: "localhost", Port: uint16(port)}}
	s := open(t, Options{}, spec)
	connected(t, s)
	if b := s.Status()[0].Box; !b.Held.Net || len(b.Refused) > 0 {
		t.Errorf("the box: %+v", b)
	}
}

// withoutNamespaces marks the process of TestRequiredBox that can make no namespaces.
const withoutNamespaces = "UPSTREAM_WITHOUT_NAMESPACES"

// A box that is required and does not hold keeps its server from starting; where it is
// not required the server starts, and what does not hold is said.
func TestRequiredBox(t *testing.T) {
	spec, folder := boxed(t, script{})
	if os.Getenv(withoutNamespaces) == "" {
		again := exec.Command(racing.Program(), "-test.run=^TestRequiredBox$", "-test.v")
		again.Env = append(os.Environ(), withoutNamespaces+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := again.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("no user namespaces here: ", err)
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestRequiredBox")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	spec.Box.Read = []string{filepath.Dir(racing.Program())}
	spec.Box.Net.Hosts = []confine.Host{{Name: "api.example.com", Port: 443}}
	spec.Box.Require = true
	log := &lockedText{}
	options := Options{Logger: slog.New(slog.NewTextHandler(log, nil))}
	s := open(t, options, spec)
	ready(t, s)
	const lacks = "which hosts it reaches (network: making namespaces: "
	if st := s.Status()[0]; st.State != Failed || !strings.Contains(st.Err, "its box is required, and this system does not enforce "+lacks) {
		t.Errorf("a required box: %+v", st)
	}
	spec.Box.Require = false
	s.Apply([]Spec{spec})
	connected(t, s)
	if diff := cmp.Diff(confine.Hold{Writes: true, Reads: true}, s.Status()[0].Box.Held); diff != "" {
		t.Errorf("%s\n%v", diff, s.Status()[0].Box.Steps)
	}
	if !strings.Contains(log.String(), lacks) {
		t.Error("what does not hold was not logged: ", log)
	}
	s.Close()
	eventually(t, "ended", func() bool { return len(left(folder)) == 0 })
}

func TestFetchingOf(t *testing.T) {
	for text, want := range map[string]string{
		"npx -y @a/b@1.2.3 /dir":              "@a/b@1.2.3 exactly runs  /dir",
		"npx --yes b":                         "b runs",
		"npx b@latest --flag":                 "b@latest runs  --flag",
		"npx -y b@^1.2.3":                     "b@^1.2.3 runs",
		"npx -p @a/b@1.2.3 -p c@1.0.0 -- cmd": "@a/b@1.2.3 c@1.0.0 exactly runs cmd",
		"npx --package=b@1.0.0-rc.1 cmd":      "b@1.0.0-rc.1 exactly runs cmd",
		"npm exec -y -- b@1.0.0 x":            "b@1.0.0 exactly runs  x",
		"npm x b":                             "b runs",
		"npm run b":                           "no",
		"npx -c node":                         "no",
		"npx --no -c node":                    "no",
		"npx ./here":                          "no",
		"npx git+https://h/x.git":             "no",
		"npx a/b":                             "no",
		"npx b@npm:c@1":                       "no",
		"npx":                                 "no",
		"npx -p":                              "no",
		"node x.js":                           "no",
	} {
		got := "no"
		if f, ok := fetchingOf(program{args: strings.Fields(text)}); ok {
			if got = strings.Join(f.packages, " "); f.exact {
				got += " exactly"
			}
			got = strings.TrimSpace(got + " runs " + f.command + " " + strings.Join(f.args, " "))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// What npx runs is fetched in a box of its own, which may write the store; the server may
// read it. An exact version is fetched once, another one is looked up at each start.
func TestFetching(t *testing.T) {
	spec, folder := boxed(t, script{})
	npx := "#!/bin/sh\n" +
		"echo run >> $npm_config_cache/runs; [ -e $npm_config_cache/fail ] && { echo no registry >&2; exit 1; }\n" +
		"modules=$npm_config_cache/_npx/abc0/node_modules; mkdir -p $modules/.bin $modules/fake\n" +
		"echo '{\"bin\":{\"fake\":\"x\"}}' > $modules/fake/package.json\n" +
		"echo x > " + folder + "/outside; env > $npm_config_cache/env\n" +
		"printf '#!/bin/sh\\nexec " + racing.Program() + "\\n' > $modules/.bin/fake; chmod +x $modules/.bin/fake; echo $modules/.bin\n"
	programs := filepath.Join(folder, "bin")
	store := filepath.Join(folder, "store") // not in what the server may write
	for _, dir := range []string{programs, store, filepath.Join(folder, "write")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(programs, "npx"), []byte(npx), 0o700); err != nil {
		t.Fatal(err)
	}
	spec.Command, spec.Args = "npx", []string{"-y", "fake@1.0.0"}
	spec.Env["SECRET"] = "canary"
	spec.Box.Write, spec.Box.Read, spec.Box.Store = []string{filepath.Join(folder, "write")}, []string{filepath.Dir(racing.Program())}, store
	environ := []string{"PATH=" + programs + ":/usr/bin:/bin", "HOME=" + folder + "/home"}
	fails := filepath.Join(store, "npm", "fail")
	runs := func() int {
		text, _ := os.ReadFile(filepath.Join(store, "npm", "runs"))
		return strings.Count(string(text), "run")
	}
	start := func(what string, want int) {
		t.Helper()
		s := New(Options{Environ: environ})
		defer s.Close()
		s.Apply([]Spec{spec})
		connected(t, s)
		if got := runs(); got != want {
			t.Errorf("%s: npx has run %d times, want %d", what, got, want)
		}
	}
	start("an exact version", 1)
	start("the same again", 1)
	spec.Args = []string{"fake"}
	start("any version", 2)
	start("any version again", 3)
	if err := os.WriteFile(fails, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start("any version, without the registry", 4)

	// What is not there yet can't be run without it.
	spec.Args = []string{"fake@2.0.0"}
	s := open(t, Options{Environ: environ}, spec)
	ready(t, s)
	if st := s.Status()[0]; !strings.Contains(st.Err, "fetching fake@2.0.0: ") || !strings.Contains(st.Err, "no registry") {
		t.Errorf("status %+v", st)
	}
	s.Close()

	if _, err := os.Stat(filepath.Join(folder, "outside")); err == nil {
		t.Error("fetching wrote outside the store")
	}
	if env, err := os.ReadFile(filepath.Join(store, "npm", "env")); err != nil || bytes.Contains(env, []byte("canary")) {
		t.Errorf("fetching saw a secret of the server: %s, %v", env, err)
	}
	spec.Args = []string{"fake@1.0.0"}
	spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"write:`+fails+`2"`, 1)
	s = open(t, Options{Environ: environ}, spec)
	ready(t, s)
	if _, err := os.Stat(fails + "2"); err == nil || s.Status()[0].State != Failed {
		t.Errorf("the server wrote into its store: %+v", s.Status()[0])
	}
}

// Where packages come from is what npm's settings say; tokens stay here.
func TestReadNPM(t *testing.T) {
	home := t.TempDir()
	rc := "registry=https://npm.example.com:8443/x/\n//npm.example.com/:_authToken=canary\n@a:registry = \"http://a.example.com/\"\ncafile=/etc/ca.pem\n"
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	n := npm.Read([]string{"HOME=" + home, "NPM_CONFIG_STRICT_SSL=false", "HTTPS_PROXY=http://user:canary@proxy.example.com:3128"}, []string{"npm_config_registry=http://127.0.0.1:4873"}, lookup)
	want := map[string]string{"npm_config_registry": "http://127.0.0.1:4873", "npm_config_@a:registry": "http://a.example.com/", "npm_config_cafile": "/etc/ca.pem", "npm_config_strict_ssl": "false"}
	if diff := cmp.Diff(want, n.Variables); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]confine.Host{{Name: "localhost", Port: 4873}, {Name: "a.example.com", Port: 80}}, registries(n)); diff != "" {
		t.Error(diff)
	}
}

// A proxy that is configured is asked for the registry, and no other host.
func TestThroughProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 4096)
		n, _ := c.Read(b)
		asked <- string(b[:n])
		c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\nhello"))
	}()
	n := npm.Read([]string{"HTTPS_PROXY=http://user:word@" + l.Addr().String()}, nil, lookup)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := n.Dial(ctx, "registry.example.com", 443)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v", b, err)
	}
	got := <-asked
	for _, want := range []string{"CONNECT registry.example.com:443 HTTP/1.1\r\n", "Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the proxy was asked %q, without %q", got, want)
		}
	}
}

// What a box costs: the start of a server until its tools are listed, and a call.
func BenchmarkBox(b *testing.B) {
	spec, _ := boxed(b, script{})
	spec.Box.Launcher = filepath.Join(b.TempDir(), "codemode-worker")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", spec.Box.Launcher, "codemode-bridge/cmd/codemode-worker")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the launcher: %v\n%s", err, out)
	}
	free := spec
	free.Box = nil
	for name, spec := range map[string]Spec{"without": free, "with": spec} {
		connect := func(b *testing.B) *Set {
			s := New(Options{})
			s.Apply([]Spec{spec})
			if err := s.WaitReady(b.Context()); err != nil || s.Status()[0].State != Connected {
				b.Fatalf("%v: %+v", err, s.Status())
			}
			return s
		}
		b.Run("start/"+name, func(b *testing.B) {
			for b.Loop() {
				s := connect(b)
				b.StopTimer()
				s.Close()
				b.StartTimer()
			}
		})
		b.Run("call/"+name, func(b *testing.B) {
			s := connect(b)
			defer s.Close()
			for b.Loop() {
				if _, err := s.Call(b.Context(), "fake", "", "exact", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A program that an interpreter runs can be read with its package, and never with all of
// the home folder.
func TestPackageOf(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	for _, file := range []string{"home/server.js", "home/loose/a.js", "home/app/package.json", "home/app/dist/a.js", "home/tools/node_modules/x/dist/a.js"} {
		path := filepath.Join(base, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		"node server.js":                           "home/server.js",
		"node --flag loose/a.js x":                 "home/loose",
		"node app/dist/a.js":                       "home/app",
		"node tools/node_modules/x/dist/a.js /any": "home/tools/node_modules",
		"python3.12 app/dist/a.js":                 "home/app",
		"node none.js":                             "",
		"cat server.js":                            "",
	} {
		if want != "" {
			want = filepath.Join(base, want)
		}
		if got := codeOf(program{args: strings.Fields(args), dir: home, env: []string{"HOME=" + home}}); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// What an installation script leaves in the store brings nothing of the machine into the
// server's box: no link to a key among the programs, and none in their place.
func TestInstallationScriptsWidenNoBox(t *testing.T) {
	home := t.TempDir()
	store, keys := filepath.Join(home, "store"), filepath.Join(home, "keys")
	bin := filepath.Join(store, "npm", "_npx", "abc0", "node_modules", ".bin")
	for _, dir := range []string{bin, keys} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(keys, "id")
	if err := os.WriteFile(key, []byte("secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"program", "server"} { // the former is no program at all
		if err := os.Symlink(key, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	b := &Box{Box: confine.Box{Read: []string{filepath.Join(store, "npm")}}, Store: store}
	env := []string{"HOME=" + home, "PATH=" + bin}
	for name, want := range map[string]string{
		"/bin/sh": "", filepath.Join(bin, "server"): "is a link that the server may have made, which leads to " + key,
	} {
		in, err := b.around(program{path: name, args: []string{name}, env: env})
		if text := fmt.Sprint(err); (err != nil) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !slices.Equal(in.Read, b.Read) {
			t.Errorf("%s: its box may read %q", name, in.Read)
		}
	}
}

// A server that may change its own code does not choose by that what it may read.
func TestServersWidenNoBox(t *testing.T) {
	home := t.TempDir()
	ws, key := filepath.Join(home, "mono", "ws"), filepath.Join(home, "keys", "id")
	for _, dir := range []string{ws, filepath.Dir(key)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{key, filepath.Join(home, "mono", "package.json"), filepath.Join(ws, "own.js")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(key, filepath.Join(ws, "swapped.js")); err != nil {
		t.Fatal(err)
	}
	b := &Box{Box: confine.Box{Write: []string{ws}}}
	for _, name := range []string{"own.js", "swapped.js"} {
		in, err := b.around(program{path: "/usr/bin/node", args: []string{"node", filepath.Join(ws, name)}, env: []string{"HOME=" + home}})
		if err != nil || slices.ContainsFunc(in.Read, func(path string) bool {
			return within(path, filepath.Join(home, "keys")) || path == filepath.Join(home, "mono")
		}) {
			t.Errorf("%s: its box may read %q, %v", name, in.Read, err)
		}
	}
}

// The name of a package's program is read by the bridge, outside of any box: whatever an
// installation script left in its place, that ends, and reads nothing beyond the store.
func TestManifestsOfHostilePackages(t *testing.T) {
	cache, outside := t.TempDir(), filepath.Join(t.TempDir(), "package.json")
	if err := os.WriteFile(outside, []byte(`{"bin":{"outside":"x"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a file without end":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a link that leads out": func(path string) error { return os.Symlink(outside, path) },
		"a pipe":                func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder":              func(path string) error { return os.Mkdir(path, 0o700) },
		"a huge one":            func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
	} {
		path := filepath.Join(cache, "modules", name, "package.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), put(path)); err != nil {
			t.Fatal(err)
		}
		if bin, err := mainBin(cache, "modules", name); err == nil {
			t.Errorf("%s: its program is %q", name, bin)
		}
	}
}
