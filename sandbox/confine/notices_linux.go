package confine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A watchedCall says what the arguments of a system call mean.
type watchedCall struct {
	number uintptr
	means  func(*notice) []Use
}

// watchedCalls are the calls that a watched program is asked about.
var watchedCalls = append(legacyCalls, []watchedCall{
	{unix.SYS_OPENAT, func(n *notice) []Use { return n.opens(n.path(0, 1), n.args[2]) }},
	{unix.SYS_OPENAT2, func(n *notice) []Use { return n.opens(n.path(0, 1), n.word(2)) }},
	{unix.SYS_TRUNCATE, func(n *notice) []Use { return n.writes(n.path(here, 0)) }},
	{unix.SYS_FCHMODAT, func(n *notice) []Use { return n.writes(n.path(0, 1)) }},
	{unix.SYS_FCHOWNAT, func(n *notice) []Use { return n.writes(n.path(0, 1)) }},
	{unix.SYS_UTIMENSAT, func(n *notice) []Use { return n.writes(n.path(0, 1)) }},
	{unix.SYS_MKDIRAT, func(n *notice) []Use { return n.places(n.path(0, 1)) }},
	{unix.SYS_MKNODAT, func(n *notice) []Use { return n.places(n.path(0, 1)) }},
	{unix.SYS_UNLINKAT, func(n *notice) []Use { return n.places(n.path(0, 1)) }},
	{unix.SYS_SYMLINKAT, func(n *notice) []Use { return n.places(n.path(1, 2)) }},
	{unix.SYS_RENAMEAT, func(n *notice) []Use { return n.places(n.path(0, 1), n.path(2, 3)) }},
	{unix.SYS_RENAMEAT2, func(n *notice) []Use { return n.places(n.path(0, 1), n.path(2, 3)) }},
	{unix.SYS_LINKAT, func(n *notice) []Use { return n.places(n.path(0, 1), n.path(2, 3)) }},
	{unix.SYS_EXECVE, func(n *notice) []Use { return n.starts(n.path(here, 0)) }},
	{unix.SYS_EXECVEAT, func(n *notice) []Use { return n.starts(n.path(0, 1)) }},
	{unix.SYS_CONNECT, func(n *notice) []Use { return n.address(Connects, 1, 2) }},
	{unix.SYS_SENDTO, func(n *notice) []Use { return n.address(Connects, 4, 5) }},
	{unix.SYS_BIND, func(n *notice) []Use { return n.address(Listens, 1, 2) }},
}...)

// here stands for the number of an argument: a path is relative to the working folder.
const here = -1

// watchFilter is the filter that tells of those calls. It refuses none.
func watchFilter() Filter {
	f := NewFilter(GoOn)
	for _, c := range watchedCalls {
		if c.number == unix.SYS_SENDTO { // only where it names an address
			f.Refuses(c.number, 4, Bits, ^uint32(0), unix.SECCOMP_RET_USER_NOTIF)
			continue
		}
		f.Call(c.number, unix.SECCOMP_RET_USER_NOTIF)
	}
	f.Call(unix.SYS_IO_URING_SETUP, Missing) // its calls could not be seen
	f.Say(GoOn)
	return f
}

// notify installs the filter on this thread alone, which stays this goroutine's, and
// returns the descriptor that tells of its calls and those of all that it starts.
func (f Filter) notify() (int, error) {
	if arch == 0 {
		return 0, errors.New("not available on " + runtime.GOARCH)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("giving up new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	switch {
	case errors.Is(errno, unix.EBUSY):
		return 0, errors.New("something else watches them already")
	case errno != 0:
		return 0, errno
	}
	return int(fd), nil
}

// A notice is one system call that waits, as struct seccomp_notif has it.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	at    uint64
	args  [6]uint64
}

// A response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// stillStands asks whether a notice still stands: _IOW('!', 2, __u64).
const stillStands = 0x40082102

// attend serves notices until no process is left that could cause one, or the other end
// of ending is closed.
func attend(listener, ending *os.File, seen func(Use)) {
	means := make(map[int32]func(*notice) []Use, len(watchedCalls))
	for _, c := range watchedCalls {
		means[int32(c.number)] = c.means
	}
	fd, stop := listener.Fd(), ending.Fd()
	control := func(request uintptr, p unsafe.Pointer) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(p)); errno != 0 {
			return errno
		}
		return nil
	}
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 || poll[1].Revents != 0 {
				return
			}
			continue
		}
		var n notice
		if err := control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
				continue // who called is gone, or interrupted
			}
			return
		}
		var uses []Use
		if mean := means[n.nr]; mean != nil {
			uses = mean(&n)
		}
		id := n.id
		// What was read is the caller's only if it still waits.
		if control(stillStands, unsafe.Pointer(&id)) == nil {
			for _, use := range uses {
				seen(use)
			}
		}
		control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}))
	}
}

// opens is what opening a path means. Nothing is read where nothing is.
func (n *notice) opens(path string, flags uint64) []Use {
	const changes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
	switch {
	case path == "" || flags&unix.O_PATH != 0:
		return nil
	case flags&unix.O_TMPFILE == unix.O_TMPFILE:
		return []Use{{Kind: Writes, Path: filepath.Join(path, "temporary"), Place: true}}
	case flags&changes != 0:
		uses := n.writes(path)
		if len(uses) > 0 && uses[0].New && flags&unix.O_CREAT == 0 {
			return nil // it will fail
		}
		return uses
	case missing(path):
		return nil
	}
	return []Use{{Kind: Reads, Path: path}}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// writes is what changing what is at a path means.
func (n *notice) writes(path string) []Use {
	if path == "" || missing(filepath.Dir(path)) {
		return nil
	}
	gone := missing(path)
	return []Use{{Kind: Writes, Path: path, New: gone, Place: gone}}
}

// places is what making, removing and renaming at paths means.
func (n *notice) places(paths ...string) []Use {
	var uses []Use
	for _, path := range paths {
		for _, use := range n.writes(path) {
			use.Place = true
			uses = append(uses, use)
		}
	}
	return uses
}

func (n *notice) starts(path string) []Use {
	if path == "" || missing(path) {
		return nil // a program is looked for in many folders
	}
	return []Use{{Kind: Starts, Path: path}}
}

// address is what using a socket's address means.
func (n *notice) address(kind UseKind, pointer, length int) []Use {
	b := n.read(n.args[pointer], int(min(n.args[length], unix.SizeofSockaddrAny)))
	if len(b) < 8 {
		return nil
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case unix.AF_INET:
		return []Use{{Kind: kind, To: netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)}}
	case unix.AF_INET6:
		if len(b) < 24 {
			return nil
		}
		return []Use{{Kind: kind, To: netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port)}}
	case unix.AF_UNIX:
		path, _, _ := bytes.Cut(b[2:], []byte{0})
		if kind != Connects || len(path) == 0 || missing(n.absolute(here, string(path))) {
			return nil
		}
		return []Use{{Kind: kind, Path: n.absolute(here, string(path))}}
	}
	return nil
}

// path reads a path, which is relative to the folder that another argument names, or to
// the working folder; empty if that can't be done.
func (n *notice) path(folder, pointer int) string {
	b := n.read(n.args[pointer], unix.PathMax)
	text, _, ended := bytes.Cut(b, []byte{0})
	if !ended || len(text) == 0 {
		return ""
	}
	return n.absolute(folder, string(text))
}

func (n *notice) absolute(folder int, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	process := "/proc/" + strconv.Itoa(int(n.pid))
	from := process + "/cwd"
	if folder != here && int32(n.args[folder]) != unix.AT_FDCWD {
		from = process + "/fd/" + strconv.Itoa(int(int32(n.args[folder])))
	}
	at, err := os.Readlink(from)
	if err != nil || !filepath.IsAbs(at) {
		return ""
	}
	return filepath.Join(at, path)
}

// word reads the first 64 bits of what an argument points to.
func (n *notice) word(pointer int) uint64 {
	b := n.read(n.args[pointer], 8)
	if len(b) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(b)
}

// read reads the memory of the process that waits: at most most bytes, fewer where the
// memory ends, and none where it can't be read.
func (n *notice) read(at uint64, most int) []byte {
	memory, err := os.Open("/proc/" + strconv.Itoa(int(n.pid)) + "/mem")
	if err != nil {
		return nil
	}
	defer memory.Close()
	b := make([]byte, most)
	// Up to the end of the page first: the next may not be there.
	first := min(most, os.Getpagesize()-int(at%uint64(os.Getpagesize())))
	got, err := memory.ReadAt(b[:first], int64(at))
	if err != nil {
		return b[:got]
	}
	more, _ := memory.ReadAt(b[first:], int64(at)+int64(first))
	return b[:first+more]
}
