package worker

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"codemode-bridge/sandbox/racing"

	"golang.org/x/sys/unix"
)

// attemptArg makes TestMain confine the process as a worker is and try one of
// attempts: what code that broke out of the engine would do next.
const attemptArg = "CODEMODE_TEST_ATTEMPT="

// attempts are by name; each returns nil if it succeeded. The argument is the
// number of the process that started this one.
var attempts = map[string]func(parent int) error{
	"read a file": func(int) error { _, err := os.ReadFile("/etc/passwd"); return err },
	"write a file": func(int) error {
		return os.WriteFile("/tmp/codemode-worker-was-here", nil, 0o600)
	},
	"list a folder":    func(int) error { _, err := os.ReadDir("/"); return err },
	"look at a file":   func(int) error { _, err := os.Stat("/etc/passwd"); return err },
	"remove a file":    func(int) error { return os.Remove("/tmp/codemode-worker-is-not-here") },
	"TCP":              func(int) error { _, err := net.Dial("tcp", "127.0.0.1:1"); return err },
	"UDP":              func(int) error { _, err := net.Dial("udp", "127.0.0.1:1"); return err },
	"a Unix socket":    func(int) error { _, err := net.Dial("unix", "@nobody"); return err },
	"a socket pair":    func(int) error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"another program":  func(int) error { return exec.Command("/bin/true").Run() },
	"become a program": func(int) error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"fork":             func(int) error { return system(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0) },
	"clone3":           func(int) error { return system(unix.SYS_CLONE3, 0, 0, 0) },
	"new namespaces":   func(int) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"the parent's memory": func(parent int) error {
		_, err := os.Open("/proc/" + strconv.Itoa(parent) + "/mem")
		return err
	},
	"trace the parent": func(parent int) error { return unix.PtraceAttach(parent) },
	"copy the parent's memory": func(parent int) error {
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err := unix.ProcessVMReadv(parent, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}, 0)
		return err
	},
	"kill the parent":          func(parent int) error { return unix.Kill(parent, unix.SIGKILL) },
	"signal a parent's thread": func(parent int) error { return unix.Tgkill(parent, parent, unix.SIGKILL) },
	"a handle of the parent":   func(parent int) error { _, err := unix.PidfdOpen(parent, 0); return err },
	"code made at run time": func(int) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"io_uring":          func(int) error { return system(unix.SYS_IO_URING_SETUP, 1, 0, 0) },
	"bpf":               func(int) error { return system(unix.SYS_BPF, 0, 0, 0) },
	"be dumpable again": func(int) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
	"raise a limit":     func(int) error { return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}) },
	"the parent's environment": func(parent int) error {
		_, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/environ")
		return err
	},
}

func system(number, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

func init() {
	name, ok := strings.CutPrefix(strings.Join(os.Environ(), ""), attemptArg)
	if !ok {
		return
	}
	confinedMain = func() {
		name, parent, _ := strings.Cut(name, "/")
		pid, _ := strconv.Atoi(parent)
		fmt.Println(harden(64 << 20))
		if err := attempts[name](pid); err != nil {
			fmt.Println("refused:", err)
			os.Exit(0)
		}
		fmt.Println("succeeded")
		os.Exit(0)
	}
}

// TestConfined tries from inside a confined process what a worker must not
// do. Each attempt is refused, or ends the process. The namespaces, which the
// parent makes, are not there: what is refused here is refused without them.
func TestConfined(t *testing.T) {
	if !limitData {
		t.Skip("the race detector makes system calls of its own")
	}
	if step := startChild(t, 64<<20).ready.Hardening["seccomp"]; step != "on" {
		t.Skipf("seccomp: %s", step)
	}
	for name := range attempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(racing.Program())
			cmd.Env = []string{attemptArg + name + "/" + strconv.Itoa(os.Getpid())}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err := cmd.Run()
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			switch {
			case strings.Contains(out.String(), "succeeded"):
				t.Errorf("was allowed; %s", out.String())
			case status.Signaled() && status.Signal() == unix.SIGSYS: // ended for trying
			case err == nil && strings.Contains(out.String(), "\nrefused: "):
				for _, word := range []string{"no such file", "connection refused", "invalid argument", "no such process", "bad address"} {
					if strings.Contains(out.String(), word) {
						t.Errorf("was not refused, but failed: %s", out.String())
					}
				}
			default:
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}

// TestOpenDescriptors holds that a worker has its pipes, what the runtime polls
// with, and nothing else, also when its parent left something open.
func TestOpenDescriptors(t *testing.T) {
	if !limitData {
		t.Skip("the descriptors of a process that is not dumpable are shown to root only")
	}
	c := startChild(t, 64<<20)
	folder := fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Skipf("not shown: %v", err)
	}
	var open []string
	for _, entry := range list {
		if what, err := os.Readlink(folder + "/" + entry.Name()); err == nil {
			what, _, _ = strings.Cut(what, ":[")
			open = append(open, what)
		}
	}
	slices.Sort(open)
	if got := strings.Join(slices.Compact(slices.Clone(open)), " "); got != "anon_inode pipe" && got != "anon_inode: pipe" {
		t.Errorf("open: %q", open)
	}
}

// TestSeccompFilter holds the filter to what the kernel demands of one, jumps
// that stay inside included.
func TestSeccompFilter(t *testing.T) {
	filter := seccompFilter(1)
	if len(filter) > unix.BPF_MAXINSNS {
		t.Errorf("%d instructions, at most %d", len(filter), unix.BPF_MAXINSNS)
	}
	for i, f := range filter {
		if f.Code&7 == unix.BPF_JMP && (i+1+int(f.Jt) >= len(filter) || i+1+int(f.Jf) >= len(filter)) {
			t.Errorf("instruction %d jumps out", i)
		}
	}
	for _, number := range deadly {
		if slices.Contains(allowed, number) {
			t.Errorf("system call %d is both allowed and deadly", number)
		}
	}
}
