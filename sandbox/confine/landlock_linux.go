package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock can refuse of the file system: all that a first version knew, and what
// later ones added.
const (
	allOfFirst = 1<<13 - 1

	// Of a folder or file that may be read.
	reading = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// Of a file, in contrast to a folder.
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// access is what Landlock leaves.
type access struct {
	read, write, run []string // paths and all below them
	anyNet           bool     // TCP at all
	links            bool     // follow links among them: nobody else has made any
}

// restrict keeps all threads of this process, and what they start, to what access
// says, and where the kernel supports it from abstract sockets and signals of others. An
// empty access leaves nothing. On makes the system call that does it.
func restrict(a access, on threads) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EOPNOTSUPP):
		return errors.New("not supported by this kernel")
	case errno != 0:
		return fmt.Errorf("asking for landlock: %w", errno)
	}
	// A kernel refuses bits and sizes that it does not know.
	rules := unix.LandlockRulesetAttr{Handled_access_fs: allOfFirst}
	size := uintptr(8)
	if version >= 2 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= cutting {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		size = 16
		if !a.anyNet {
			rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if version >= 5 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = 24
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return fmt.Errorf("making the rule set: %w", errno)
	}
	defer unix.Close(int(fd))
	all := rules.Handled_access_fs
	for _, kind := range []struct {
		paths []string
		leave uint64
	}{
		{a.read, reading},
		{a.write, all &^ unix.LANDLOCK_ACCESS_FS_EXECUTE},
		{a.run, reading | unix.LANDLOCK_ACCESS_FS_EXECUTE},
	} {
		for _, path := range kind.paths {
			if err := a.leave(int(fd), path, kind.leave&all); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("allowing %s: %w", path, err)
			}
		}
	}
	return on(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
}

// cutting is the first version that knows of cutting files short.
const cutting = 3

// landlockVersion is what the kernel has; 0 without Landlock.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// leave adds to a rule set that path, and what is below it, may be used so.
func (a access) leave(rules int, path string, rights uint64) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if !a.links && !OfSystem(path) && !within(path, "/etc") {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var what unix.Stat_t
	if err := unix.Fstat(fd, &what); err != nil {
		return err
	}
	if what.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Closed keeps all threads of this process from the file system and, where the kernel
// supports it, from TCP, abstract sockets and signals of others.
func Closed() error { return restrict(access{}, everyThread) }

// NoNewPrivileges keeps all threads of this process, and what they start, from powers that
// a program file would give.
func NoNewPrivileges() error { return everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0) }

// threads makes a system call on some threads of this process. The settings that make a
// box are a thread's own, and Go moves goroutines between threads.
type threads func(number, a, b, c uintptr) error

// everyThread makes the call on all of them. With C code in the program Go cannot.
func everyThread(number, a, b, c uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// startingThread makes the call at least on this thread, which must be the one that starts
// what is to be confined: that has what the thread has.
func startingThread(number, a, b, c uintptr) error {
	err := everyThread(number, a, b, c)
	if !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	if _, _, errno := unix.RawSyscall6(number, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
