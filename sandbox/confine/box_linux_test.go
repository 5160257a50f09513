package confine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const attemptsVariable = "CODEMODE_TEST_ATTEMPTS"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(Main())
	}
	if folder := os.Getenv(watchedVariable); folder != "" {
		os.Exit(useThings(folder))
	}
	if text := os.Getenv(attemptsVariable); text != "" {
		os.Exit(attempt(text))
	}
	os.Exit(m.Run())
}

// whole skips a test where a program gets no namespaces, as in many containers, or the
// kernel has no Landlock.
func whole(t *testing.T) {
	t.Helper()
	c := exec.Command("/bin/true")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: namespaces&^syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, // which mounts
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := c.Run(); err != nil {
		t.Skip("no namespaces here: ", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		t.Skip("no Landlock here: ", errno)
	}
}

// newAround makes what the attempts are about.
func newAround(t *testing.T) (p around, base string) {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "box") // a box has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	p = around{
		Write: filepath.Join(base, "write"), Read: filepath.Join(base, "read"), Kept: filepath.Join(base, "write", "a", "kept"),
		Key: filepath.Join(base, "home", ".ssh", "id"), Canary: filepath.Join(base, "canary"), Spare: filepath.Join(base, "spare"),
		Socket: filepath.Join(base, "s"), Abstract: "@codemode-" + filepath.Base(base), Bridge: os.Getpid(),
	}
	for _, folder := range []string{p.Write, p.Read, p.Kept, filepath.Dir(p.Key)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{p.Key, p.Spare, filepath.Join(p.Read, "text"), filepath.Join(p.Kept, "text"), filepath.Join(p.Write, "had"), filepath.Join(p.Write, "had2"), filepath.Join(p.Write, "had3")} {
		if err := os.WriteFile(name, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range [][2]string{{"unix", p.Socket}, {"unix", p.Abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if at[0] == "tcp" {
			p.Port = l.Addr().String()
		}
	}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Datagrams = c.LocalAddr().String()
	var echo sync.WaitGroup
	echo.Go(func() {
		b := make([]byte, 16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	})
	t.Cleanup(func() { c.Close(); echo.Wait() })
	return p, base
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// A program in a box can do what the box allows, and nothing of what it does not. So it is
// also where the system allows less than all of a box, but for what the steps then say. And
// without a box the attempts succeed.
func TestBox(t *testing.T) {
	whole(t)
	const memory = "memory is not bounded: no control group is delegated to this program"
	bounded := memory
	switch {
	case !kernel(5, 14):
		bounded = "processes are not bounded: this kernel counts those of the user everywhere; " + memory
	case !kernel(6, 14) && os.Getuid() == 0:
		bounded = "processes are not bounded: this kernel does not bound those of root; " + memory
	}
	var signals []string
	if !kernel(6, 12) {
		signals = []string{"end the bridge"} // Landlock has no say in it there
	}
	theKept := []string{"write what is kept in it", "remove what is kept in it", "rename what is kept in it", "rename what holds what is kept"}
	for _, row := range []struct {
		name    string
		narrow  func(*order)
		steps   Steps
		but     []string // attempts that succeed
		without []string // what it cannot do
	}{
		{
			name:   "all steps",
			narrow: func(*order) {},
			steps:  Steps{Files: on, Processes: on, Network: on, Landlock: on, Powers: on, Calls: on, Limits: bounded},
		},
		{
			name:    "no root of its own",
			narrow:  func(o *order) { o.Root = false },
			steps:   Steps{Processes: on, Network: on, Landlock: "cannot keep KEPT from being changed, inside WRITE", Powers: on, Calls: on, Limits: bounded},
			but:     theKept,
			without: []string{"a file at home"},
		},
		{
			name:    "no namespaces",
			narrow:  func(o *order) { o.Root, o.Namespaces = false, false },
			steps:   Steps{Network: on, Landlock: "cannot keep KEPT from being changed, inside WRITE", Powers: on, Calls: on, Limits: "processes are not bounded: this kernel counts those of the user everywhere; " + memory},
			but:     slices.Concat([]string{"see the bridge"}, signals, theKept),
			without: []string{"a file at home", "talk to itself"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, base := newAround(t)
			self := executable(t)
			o, err := Box{Write: []string{p.Write}, Read: []string{p.Read, p.Kept, filepath.Dir(self)}}.order()
			if err != nil {
				t.Fatal(err)
			}
			o.delegation = Delegation{}
			row.narrow(&o)
			var out bytes.Buffer
			run, err := o.start(self, func() *exec.Cmd {
				c := attempting(t, self, base, p)
				c.Stdout, c.Stderr = &out, os.Stderr
				return c
			}())
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			names := strings.NewReplacer("KEPT", p.Kept, "WRITE", p.Write)
			for step, want := range row.steps {
				row.steps[step] = names.Replace(want)
			}
			if diff := cmp.Diff(row.steps, run.Steps); diff != "" {
				t.Errorf("steps, want and got:\n%s", diff)
			}
			if err := run.Cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v", out.Bytes(), err)
			}
			for name := range use {
				if done := got[name] == "done"; done == slices.Contains(row.without, name) {
					t.Errorf("%s: %s", name, got[name])
				}
			}
			for name := range attempts {
				if got[name] == "done" && !slices.Contains(row.but, name) {
					t.Errorf("%s: it could", name)
				}
			}
			for _, name := range []string{p.Key, p.Spare, filepath.Join(p.Read, "text")} {
				if b, err := os.ReadFile(name); string(b) != "secret" {
					t.Errorf("%s has %q now (%v)", name, b, err)
				}
			}
			if _, err := os.Lstat(p.Canary); err == nil {
				t.Error("something was written beside the box")
			}
		})
	}
	t.Run("no box", func(t *testing.T) {
		p, base := newAround(t)
		c := attempting(t, executable(t), base, p)
		c.Env = append(c.Env, attemptsVariable+"_HARMLESS=1")
		c.Stderr = os.Stderr
		text, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for name, what := range got {
			if what != "done" && !slices.Contains(elsewhere, name) {
				t.Errorf("%s: %s", name, what)
			}
		}
	})
}

// attempting is a program that makes the attempts.
func attempting(t *testing.T, self, base string, p around) *exec.Cmd {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = []string{
		"HOME=" + filepath.Join(base, "home"), attemptsVariable + "=" + string(text),
		"SSH_AUTH_SOCK=" + p.Socket, "DISPLAY=:0", "TMPDIR=" + os.TempDir(),
	}
	return c
}

// An ordinary user has the same boxes as root.
func TestBoxesOfAnOrdinaryUser(t *testing.T) {
	whole(t)
	if os.Getuid() != 0 {
		t.Skip("the other tests are run by one")
	}
	folder, err := os.MkdirTemp("/var/tmp", "box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	text, err := os.ReadFile(executable(t))
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(folder, "confine.test")
	const nobody = 65534
	temp := filepath.Join(folder, "tmp")
	if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(self, text, 0o755), os.Mkdir(temp, 0o700), os.Chown(temp, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^(TestBox|TestNothingOutlivesABox|TestForkBomb)$", "-test.v")
	c.Dir, c.Env = "/", []string{"PATH=/usr/bin:/bin", "TMPDIR=" + temp}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("--- SKIP")) || !bytes.Contains(out, []byte("--- PASS: TestBox")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// A box has a bound on its processes, and one that reaches it leaves the machine alone.
func TestForkBomb(t *testing.T) {
	whole(t)
	if !kernel(6, 14) && (os.Getuid() == 0 || !kernel(5, 14)) {
		t.Skip("this kernel bounds the processes of no namespace")
	}
	const most, tries = 320, 400
	o, err := Box{}.order()
	if err != nil {
		t.Fatal(err)
	}
	o.Most = most
	// They end with the box, which ends when the shell gives up.
	c := exec.Command("/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 1000 & done; echo all", tries))
	c.Env = []string{"PATH=/usr/bin:/bin"}
	var out bytes.Buffer
	c.Stdout = &out
	p, err := o.start(executable(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_ = p.Cmd.Wait() // the shell gives up
	lines := strings.Fields(out.String())
	if last := lines[len(lines)-1]; last == "all" || len(lines) < most/2 {
		t.Errorf("of at most %d processes it began %d, and ended with %q", most, len(lines), last)
	}
}

// All that a program started ends with it, and it ends with the bridge.
func TestNothingOutlivesABox(t *testing.T) {
	for _, namespaces := range []bool{false, true} {
		if namespaces {
			whole(t)
		}
		for _, end := range []string{"the program ends", "the bridge ends"} {
			t.Run(fmt.Sprintf("%s, namespaces: %v", end, namespaces), func(t *testing.T) {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				// Two that nobody waits for, in sessions of their own, one of them with a child.
				script := "(setsid sh -c 'sleep 1000 & sleep 1000' &); setsid sleep 1000 & exit 0"
				if end == "the bridge ends" {
					script = strings.Replace(script, "exit 0", "sleep 1000", 1)
				}
				o, err := Box{}.order()
				if err != nil {
					t.Fatal(err)
				}
				o.Namespaces, o.Root = namespaces, namespaces
				c := exec.Command("/bin/sh", "-c", script)
				c.Env = []string{"PATH=/usr/bin:/bin"}
				c.Stdout = w
				p, err := o.start(executable(t), c)
				if err != nil {
					t.Fatal(err)
				}
				w.Close()
				if end == "the bridge ends" {
					p.Close()
				} else {
					defer p.Close()
				}
				if _, err := io.ReadAll(r); err != nil { // ends when nobody has the pipe any more
					t.Fatal(err)
				}
				var exit *exec.ExitError
				if err := p.Cmd.Wait(); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				if exit != nil && exit.Sys().(syscall.WaitStatus).Signaled() {
					t.Errorf("the launcher was killed: %v", exit)
				}
			})
		}
	}
}

// What a kernel has is known by its release.
func TestKernel(t *testing.T) {
	for release, want := range map[string]bool{
		"6.14.0": true, "6.14": true, "6.14-rc1": true, "6.18.44-fc-v669": true, "7.0.1": true, "10.0": true,
		"6.13.9": false, "6.8.0-41-generic": false, "5.15.0": false, "": false, "x.y": false, "6": false, "6.x": false,
	} {
		if got := atLeast(release, 6, 14); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
