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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a program in a box tries, by name: each returns nil if it succeeded. There is
// what it may touch and what it may not.
var attempts = map[string]func(around) error{
	// What a box allows.
	"write in it":        func(p around) error { return os.WriteFile(filepath.Join(p.Write, "new"), nil, 0o600) },
	"rename in it":       func(p around) error { return os.Rename(filepath.Join(p.Write, "had"), filepath.Join(p.Write, "has")) },
	"read what is named": func(p around) error { _, err := os.ReadFile(filepath.Join(p.Read, "text")); return err },
	"a temporary file":   func(around) error { return os.WriteFile("/tmp/x", nil, 0o600) },
	"a file at home":     func(around) error { return os.WriteFile(filepath.Join(os.Getenv("HOME"), "x"), nil, 0o600) },
	"start a program":    func(around) error { return exec.Command("/bin/true").Run() },
	"talk to itself":     talkToItself,

	// What it does not.
	"read a key":                func(p around) error { _, err := os.ReadFile(p.Key); return err },
	"read a key by a link":      func(p around) error { return byLink(p, os.Symlink) },
	"read a key by a hard link": func(p around) error { return byLink(p, os.Link) },
	"read a key by /proc": func(p around) error {
		_, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/root" + p.Key)
		return err
	},
	"read a key by a descriptor": byDescriptor,
	"write what it may read":     func(p around) error { return os.WriteFile(filepath.Join(p.Read, "text"), []byte("x"), 0o600) },
	"write beside it":            func(p around) error { return os.WriteFile(p.Canary, []byte("x"), 0o600) },
	"move out of it":             func(p around) error { return reached(os.Rename(filepath.Join(p.Write, "had"), p.Canary), p) },
	"write /etc/passwd":          func(around) error { return os.WriteFile("/etc/passwd", nil, 0o600) },
	"read /etc/shadow":           func(around) error { _, err := os.ReadFile("/etc/shadow"); return err },
	"mount":                      func(p around) error { return unix.Mount("/", p.Write, "", unix.MS_BIND, "") },
	"mount it for writing":       func(p around) error { return unix.Mount("", p.Read, "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"new namespaces":             func(around) error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) },
	"another root":               func(p around) error { return unix.Chroot(p.Write) },
	"trace its launcher":         func(around) error { return unix.PtraceAttach(os.Getppid()) },
	"end the bridge":             func(p around) error { return unix.Kill(p.Bridge, 0) },
	"see the bridge":             func(p around) error { return sees(p.Bridge) },
	"the bridge's socket":        func(p around) error { return dial("unix", p.Socket) },
	"an abstract socket":         func(p around) error { return dial("unix", p.Abstract) },
	"the bridge's port":          func(p around) error { return dial("tcp", p.Port) },
	"a host":                     func(around) error { return dial("tcp", "203.0.113.7:443") },
	"a name":                     func(around) error { _, err := net.LookupHost("api.example.com"); return err },
	"raw packets":                func(around) error { return socket(unix.AF_PACKET, unix.SOCK_RAW) },
	"another kind of network":    func(around) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) },
	"the kernel's keys": func(around) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	},
	"io_uring":             func(around) error { return call(unix.SYS_IO_URING_SETUP, 1) },
	"bpf":                  func(around) error { return call(unix.SYS_BPF, 0) },
	"files by handle":      func(around) error { return call(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(unix.AT_FDCWD&0xffffffff)) },
	"type into a terminal": func(around) error { return unix.IoctlSetInt(0, unix.TIOCSTI, 0) },
	"the disk":             func(around) error { return unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) },
}

// inside are the attempts that a box allows.
var inside = []string{"write in it", "rename in it", "read what is named", "a temporary file", "a file at home", "start a program", "talk to itself"}

// A around is what the attempts are about.
type around struct {
	Write, Read, Key, Canary, Socket, Abstract, Port string
	Bridge                                           int
}

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

// attempt makes all attempts, and prints what became of them.
func attempt(text string) int {
	var p around
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	got := map[string]string{}
	for name, try := range attempts {
		got[name] = "done"
		if err := try(p); err != nil {
			got[name] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		return 1
	}
	return 0
}

func reached(err error, p around) error {
	if err != nil {
		return err
	}
	if _, err := os.Stat(p.Canary); err != nil {
		return err
	}
	return nil
}

func byLink(p around, link func(string, string) error) error {
	name := filepath.Join(p.Write, "link")
	defer os.Remove(name)
	if err := link(p.Key, name); err != nil {
		return err
	}
	_, err := os.ReadFile(name)
	return err
}

// byDescriptor looks for a folder of the machine among the descriptors that it has.
func byDescriptor(p around) error {
	for fd := 3; fd < 64; fd++ {
		if f, err := unix.Openat(fd, strings.TrimPrefix(p.Key, "/"), unix.O_RDONLY, 0); err == nil {
			unix.Close(f)
			return nil
		}
	}
	return errors.New("none leads there")
}

func sees(pid int) error {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err == nil && !bytes.Contains(b, []byte("confine.test")) {
		return errors.New("it is another process")
	}
	return err
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func call(number, first uintptr) error {
	if _, _, errno := unix.RawSyscall(number, first, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func talkToItself(around) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dial("tcp", l.Addr().String())
}

// boxes skips a test where no launcher works: the system call that reaches all threads
// is not there in a program with C code, such as one built for the race detector.
func boxes(t *testing.T) {
	t.Helper()
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0); errno == unix.ENOTSUP {
		t.Skip("a launcher with C code cannot confine all of its threads")
	}
}

// A program in a box can do what the box allows, and nothing of what it does not.
func TestBox(t *testing.T) {
	boxes(t)
	base, err := os.MkdirTemp("/var/tmp", "box") // a box has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	p := around{
		Write: filepath.Join(base, "write"), Read: filepath.Join(base, "read"), Key: filepath.Join(base, "home", ".ssh", "id"),
		Canary: filepath.Join(base, "canary"), Socket: filepath.Join(base, "s"), Abstract: "@codemode-" + strconv.Itoa(os.Getpid()), Bridge: os.Getpid(),
	}
	for _, folder := range []string{p.Write, p.Read, filepath.Dir(p.Key)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{p.Key, filepath.Join(p.Read, "text"), filepath.Join(p.Write, "had")} {
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	box := Box{Write: []string{p.Write}, Read: []string{p.Read, filepath.Dir(self)}}
	var out bytes.Buffer
	run, err := box.Start(self, func() *exec.Cmd {
		c := exec.Command(self)
		c.Env = []string{"HOME=" + filepath.Join(base, "home"), attemptsVariable + "=" + string(text)}
		c.Stdout, c.Stderr = &out, os.Stderr
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	for step, how := range run.Steps {
		if how != on {
			t.Errorf("%s: %s", step, how)
		}
	}
	if err := run.Cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	allowed := map[string]bool{}
	for _, name := range inside {
		allowed[name] = true
	}
	for name := range attempts {
		if done := got[name] == "done"; done != allowed[name] {
			t.Errorf("%s: %s", name, got[name])
		}
	}
	if _, err := os.Stat(p.Canary); err == nil {
		t.Error("something was written beside the box")
	}
}

// All that a program started ends with it, and it ends with the bridge.
func TestNothingOutlivesABox(t *testing.T) {
	boxes(t)
	for name, end := range map[string]func(*Program){
		"the program ends": func(p *Program) {},
		"the bridge ends":  func(p *Program) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			script := "setsid sleep 1000 & exit 0"
			if name == "the bridge ends" {
				script = "setsid sleep 1000 & sleep 1000"
			}
			p, err := Box{}.Start(self, func() *exec.Cmd {
				c := exec.Command("/bin/sh", "-c", script)
				c.Env = []string{"PATH=/usr/bin:/bin"}
				c.Stdout = w
				return c
			})
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			end(p)
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
