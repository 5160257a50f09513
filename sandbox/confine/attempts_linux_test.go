package confine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a hostile program tries, by name: each returns nil if it succeeded.
var attempts = map[string]func(around) error{
	// Files.
	"read a key":                 func(p around) error { return reads(p.Key) },
	"read a key by a link":       func(p around) error { return byLink(p, os.Symlink) },
	"read a key by a hard link":  func(p around) error { return byLink(p, os.Link) },
	"read a key by ..":           func(p around) error { return reads(p.Write + "/../home/.ssh/id") },
	"read a key by a descriptor": byDescriptor,
	"read a key by its launcher": func(p around) error { return reads(process(os.Getppid(), "root"+p.Key)) },
	"read a key by the bridge":   func(p around) error { return reads(process(p.Bridge, "root"+p.Key)) },
	"read a key by any process": func(p around) error {
		roots, err := filepath.Glob("/proc/[0-9]*/root" + p.Key)
		for _, name := range roots {
			err = errors.Join(err, reads(name))
		}
		return errors.Join(err, found(len(roots)))
	},
	"read /etc/shadow":       func(around) error { return reads("/etc/shadow") },
	"write what it may read": func(p around) error { return writes(filepath.Join(p.Read, "text")) },
	"write beside it":        func(p around) error { return reached(writes(p.Canary), p) },
	"write beside it by a link": func(p around) error {
		if err := os.Symlink("..", filepath.Join(p.Write, "up")); err != nil {
			return err
		}
		return reached(writes(filepath.Join(p.Write, "up", "canary")), p)
	},
	"move out of it":                 func(p around) error { return reached(os.Rename(filepath.Join(p.Write, "had"), p.Canary), p) },
	"link out of it":                 func(p around) error { return reached(os.Link(filepath.Join(p.Write, "had2"), p.Canary), p) },
	"remove beside it":               func(p around) error { return os.Remove(p.Spare) },
	"write what is kept in it":       func(p around) error { return writes(filepath.Join(p.Kept, "text")) },
	"remove what is kept in it":      func(p around) error { return os.Remove(filepath.Join(p.Kept, "text")) },
	"rename what is kept in it":      func(p around) error { return os.Rename(p.Kept, p.Kept+"-old") },
	"rename what holds what is kept": func(p around) error { return os.Rename(filepath.Dir(p.Kept), p.Write+"/old") },
	"write /etc/passwd":              func(around) error { return opens("/etc/passwd") },
	"the machine's settings":         func(around) error { return opens("/proc/sys/kernel/core_pattern") },
	"its bound on processes":         func(around) error { return opens("/proc/sys/kernel/pid_max") },
	"the disk":                       theDisk,

	// Mounts, namespaces, roots.
	"mount": func(p around) error { return unix.Mount("/", p.Write, "", unix.MS_BIND, "") },
	"mount it for writing": func(p around) error {
		return unix.Mount("", p.Read, "", unix.MS_REMOUNT|unix.MS_BIND, "")
	},
	"unmount what is kept":          func(p around) error { return unix.Unmount(p.Kept, unix.MNT_DETACH) },
	"mount the new way":             func(around) error { return told(unix.SYS_FSOPEN) },
	"copy a mount":                  func(around) error { return told(unix.SYS_OPEN_TREE) },
	"move a mount":                  func(around) error { return told(unix.SYS_MOVE_MOUNT) },
	"change a mount":                func(around) error { return told(unix.SYS_MOUNT_SETATTR) },
	"new namespaces":                func(around) error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) },
	"a child in namespaces":         func(around) error { return told(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS) },
	"a child in namespaces, hidden": func(around) error { return told(unix.SYS_CLONE3) },
	"join namespaces":               func(p around) error { return told(unix.SYS_SETNS) },
	"another root":                  func(p around) error { return unix.Chroot(p.Write) },
	"files by handle":               func(around) error { return told(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(unix.AT_FDCWD&0xffffffff)) },

	// Processes.
	"trace its launcher":         func(around) error { return unix.PtraceAttach(os.Getppid()) },
	"its launcher's memory":      func(around) error { return opens(process(os.Getppid(), "mem")) },
	"its launcher's descriptors": func(around) error { return descriptors(os.Getppid()) },
	"copy its launcher's memory": func(around) error { return copies(os.Getppid()) },
	"a descriptor of its launcher": func(around) error {
		fd, err := unix.PidfdOpen(os.Getppid(), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	},
	"speak as its launcher":    speaks,
	"end the bridge":           func(p around) error { return unix.Kill(p.Bridge, 0) },
	"see the bridge":           func(p around) error { return sees(p.Bridge) },
	"the bridge's environment": func(p around) error { return holds(process(p.Bridge, "environ"), "PATH=") },
	"the bridge's descriptors": func(p around) error { return descriptors(p.Bridge) },

	// The network, and what else speaks.
	"the bridge's socket":       func(p around) error { return dial("unix", p.Socket) },
	"an abstract socket":        func(p around) error { return dial("unix", p.Abstract) },
	"the person's agent":        func(around) error { return dial("unix", os.Getenv("SSH_AUTH_SOCK")) },
	"the person's display":      func(around) error { return has("DISPLAY") },
	"the bridge's port":         func(p around) error { return dial("tcp", p.Port) },
	"the bridge's datagrams":    datagram,
	"a host":                    func(around) error { return dial("tcp", "203.0.113.7:443") },
	"a name":                    func(around) error { _, err := net.LookupHost("api.example.com"); return err },
	"raw packets":               func(around) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"another machine's sockets": func(around) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"the kernel's ciphers":      func(around) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"bluetooth":                 func(around) error { return socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0) },
	"the machine's sockets":     func(around) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG) },
	"the machine's devices":     func(around) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) },

	// The kernel.
	"the kernel's keys":     func(around) error { return told(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID) },
	"add a key":             func(around) error { return told(unix.SYS_ADD_KEY) },
	"io_uring":              func(around) error { return told(unix.SYS_IO_URING_SETUP, 1) },
	"bpf":                   func(around) error { return told(unix.SYS_BPF) },
	"trace the kernel":      func(around) error { return told(unix.SYS_PERF_EVENT_OPEN) },
	"userfaultfd":           func(around) error { return told(unix.SYS_USERFAULTFD, 1<<31) },
	"a kernel module":       func(around) error { return told(unix.SYS_FINIT_MODULE, 1<<31) },
	"another kernel":        func(around) error { return told(unix.SYS_KEXEC_LOAD, 0, 1<<31) },
	"type into a terminal":  func(around) error { return told(unix.SYS_IOCTL, 0, unix.TIOCSTI) },
	"paste into a terminal": func(around) error { return told(unix.SYS_IOCTL, 0, unix.TIOCLINUX) },
}

// harm are attempts that would change this machine if they succeeded, or what the others
// are about: without a box they are not made.
var harm = []string{
	"mount", "mount it for writing", "unmount what is kept", "new namespaces", "another root", "trace its launcher",
	"rename what is kept in it", "rename what holds what is kept", "remove what is kept in it", "move out of it", "move a mount",
}

// elsewhere are attempts that need not succeed without a box on every machine.
var elsewhere = []string{
	"read a key by a descriptor", "speak as its launcher", "its bound on processes", "a host", "a name", "bluetooth",
	"another machine's sockets", "the kernel's ciphers", "raw packets", "io_uring", "bpf", "trace the kernel", "userfaultfd",
	"a kernel module", "another kernel", "the machine's settings", "read /etc/shadow", "write /etc/passwd", "the disk",
	"mount the new way", "copy a mount", "change a mount", "join namespaces", "files by handle", "read a key by any process",
	"a descriptor of its launcher", "copy its launcher's memory", "its launcher's memory", "add a key", "the kernel's keys",
}

// use is what a box allows.
var use = map[string]func(around) error{
	"write in it":               func(p around) error { return writes(filepath.Join(p.Write, "new")) },
	"rename in it":              func(p around) error { return os.Rename(filepath.Join(p.Write, "had3"), filepath.Join(p.Write, "has")) },
	"read what is named":        func(p around) error { return reads(filepath.Join(p.Read, "text")) },
	"read what is kept":         func(p around) error { return reads(filepath.Join(p.Kept, "text")) },
	"write beside what is kept": func(p around) error { return writes(filepath.Join(filepath.Dir(p.Kept), "new")) },
	"a temporary file":          func(around) error { return temporary() },
	"start a program":           func(around) error { return exec.Command("/bin/true").Run() },
	"talk to itself":            talkToItself,
	"see itself":                func(around) error { return reads("/proc/self/status") },
	"a pair of sockets":         func(around) error { return aPair() },
	"a file at home":            func(around) error { return writes(filepath.Join(os.Getenv("HOME"), "x")) },
}

// An around is what the attempts are about.
type around struct {
	Write, Read, Kept, Key, Canary, Spare, Socket, Abstract, Port, Datagrams string
	Bridge                                                                   int
}

// attempt makes all attempts and uses, and prints what became of them.
func attempt(text string) int {
	var p around
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	got := map[string]string{}
	// What moves things comes last.
	for _, all := range []map[string]func(around) error{use, attempts} {
		for name, try := range all {
			if os.Getenv(attemptsVariable+"_HARMLESS") != "" && slices.Contains(harm, name) {
				continue
			}
			got[name] = "done"
			if err := try(p); err != nil {
				got[name] = err.Error()
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		return 1
	}
	return 0
}

func process(pid int, what string) string { return "/proc/" + strconv.Itoa(pid) + "/" + what }

func reads(name string) error { _, err := os.ReadFile(name); return err }

func writes(name string) error { return os.WriteFile(name, []byte("x"), 0o600) }

func temporary() error {
	f, err := os.CreateTemp("", "box")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return err
}

// opens opens a file for writing, and leaves it as it is.
func opens(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func holds(name, text string) error {
	b, err := os.ReadFile(name)
	if err == nil && !bytes.Contains(b, []byte(text)) {
		return errors.New("it is not there")
	}
	return err
}

func found(n int) error {
	if n == 0 {
		return errors.New("there is none")
	}
	return nil
}

func has(variable string) error { return found(len(os.Getenv(variable))) }

func reached(err error, p around) error {
	if err != nil {
		return err
	}
	return os.Remove(p.Canary)
}

func byLink(p around, link func(string, string) error) error {
	name := filepath.Join(p.Write, "link")
	defer os.Remove(name)
	if err := link(p.Key, name); err != nil {
		return err
	}
	return reads(name)
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

// speaks looks for the connection of the launcher with the bridge.
func speaks(around) error {
	for fd := 3; fd < 64; fd++ {
		if what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && strings.HasPrefix(what, "socket:") {
			if _, err := unix.Getpeername(fd); err == nil {
				return nil
			}
		}
	}
	return errors.New("there is no connection")
}

// descriptors looks behind those of a process.
func descriptors(pid int) error {
	list, err := os.ReadDir(process(pid, "fd"))
	for _, fd := range list {
		if _, err = os.Readlink(process(pid, "fd/"+fd.Name())); err == nil {
			return nil
		}
	}
	return errors.Join(err, errors.New("none shows where it leads"))
}

func aPair() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return err
}

func theDisk(p around) error {
	name := filepath.Join(p.Write, "disk")
	if err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		return err
	}
	defer os.Remove(name)
	return opens(name)
}

func sees(pid int) error { return holds(process(pid, "cmdline"), "confine.test") }

// copies reads the first bytes of a process at the place where this one has some.
func copies(pid int) error {
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
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

// datagram sends one, and waits for the answer.
func datagram(p around) error {
	c, err := net.Dial("udp", p.Datagrams)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 4))
	return err
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// told makes a system call with arguments that change nothing, and reports whether the
// kernel looked at them: then others could have succeeded.
func told(number uintptr, args ...uintptr) error {
	args = append(args, 0, 0)
	_, _, errno := unix.RawSyscall(number, args[0], args[1], 0)
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
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
