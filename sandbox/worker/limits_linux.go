package worker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slack is what the process needs besides the heap: Go's own tables, stacks,
// and what has been freed and not yet given back.
const slack = 128 << 20

// harden confines the process, each step best effort, and reports each. It
// runs after Hello, when everything that is needed is loaded and open; none
// of it can be undone.
func harden(heap int64) map[string]string {
	steps := make(map[string]string)
	step := func(name string, err error) {
		steps[name] = "on"
		if err != nil {
			steps[name] = err.Error()
		}
	}
	limit := func(resource int, n uint64) error {
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n})
	}
	step("first-when-memory-is-short", preferForKilling()) // impossible after not-dumpable
	step("parent-death-signal", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	step("not-dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	step("no-new-privileges", everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0))
	// RLIMIT_DATA stops one huge allocation in native code, between two looks
	// of the monitor. RLIMIT_AS is of no use: Go reserves far more than it takes.
	if limitData {
		step("memory-limit", limit(unix.RLIMIT_DATA, uint64(2*heap+slack)))
	}
	step("no-core-dump", limit(unix.RLIMIT_CORE, 0))
	step("small-files", limit(unix.RLIMIT_FSIZE, 1<<20)) // stderr may be one
	// 0, 1 and 2 are open, and what the runtime polls with.
	step("few-descriptors", limit(unix.RLIMIT_NOFILE, 8))
	step("landlock", landlock())
	if limitData {
		step("seccomp", seccomp()) // the last: it refuses all of the above
	}
	return steps
}

// closeInherited leaves the process its pipes and the runtime's poller. The runtime's
// other descriptors, for the limits of its control group, are no longer needed (see
// Main).
func closeInherited() {
	const folder = "/proc/self/fd/"
	list, err := os.ReadDir(folder)
	if err != nil {
		return // the parent passes nothing on
	}
	for _, entry := range list {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if what, err := os.Readlink(folder + entry.Name()); err == nil && !strings.HasPrefix(what, "anon_inode:") {
			unix.Close(fd)
		}
	}
}

// preferForKilling asks the system to end this process before others when its
// memory is short: it holds nothing that anybody needs.
func preferForKilling() error {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("1000")
	return errors.Join(err, f.Close())
}

// landlock removes access to the file system and, where the kernel supports it, to TCP,
// UDP, abstract sockets and signals to other processes. The rule set allows nothing.
func landlock() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EOPNOTSUPP):
		return errors.New("not supported by this kernel")
	case errno != 0:
		return fmt.Errorf("asking for landlock: %w", errno)
	}
	// A kernel refuses bits and sizes that it does not know.
	rules := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1}
	size := uintptr(8)
	if version >= 2 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = 16
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
	return everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
}

// everyThread makes a system call on all threads: these settings are a
// thread's own, and Go moves goroutines between threads.
func everyThread(number, a, b, c uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}
