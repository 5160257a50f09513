package confine

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arch is the number by which a filter knows the architecture whose system call numbers
// it was written for. It is 0 where there is none, and then no filter.
var arch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// A Filter is a BPF program that decides over each system call, by its number and
// arguments.
type Filter []unix.SockFilter

// Offsets in struct seccomp_data, which a filter reads. Both architectures
// are little endian: the low half of an argument comes first.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// What a filter can say of a call.
const (
	GoOn    = unix.SECCOMP_RET_ALLOW
	Refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	Missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // as on an older kernel
	End     = unix.SECCOMP_RET_KILL_PROCESS
)

// Tests on a value.
const (
	Equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	Bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K // any of these
)

const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	mask  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ret   = unix.BPF_RET | unix.BPF_K

	x32 = 0x40000000
)

// NewFilter begins a filter that says other of calls of another architecture, and of x32.
func NewFilter(other uint32) Filter {
	var f Filter
	f.add(load, dataArch, 0, 0)
	f.add(Equal, arch, 1, 0)
	f.Say(other)
	f.add(load, dataNumber, 0, 0)
	f.add(least, x32, 0, 1)
	f.Say(other)
	return f
}

func (f *Filter) add(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

// Say ends the filter for the calls that come so far.
func (f *Filter) Say(what uint32) { f.add(ret, what, 0, 0) }

// Call says what of the calls with this number.
func (f *Filter) Call(number uintptr, what uint32) {
	f.add(Equal, uint32(number), 0, 1)
	f.Say(what)
}

// Only tests one argument of the calls with this number, and says the one or the other.
func (f *Filter) Only(number uintptr, argument int, test uint16, k uint32, yes, no uint32) {
	f.Masked(number, argument, ^uint32(0), test, k, yes, no)
}

// Masked is Only for some bits of the argument.
func (f *Filter) Masked(number uintptr, argument int, bits uint32, test uint16, k uint32, yes, no uint32) {
	f.add(Equal, uint32(number), 0, 5)
	f.add(load, uint32(dataArgs+8*argument), 0, 0)
	f.add(mask, bits, 0, 0)
	f.add(test, k, 0, 1)
	f.Say(yes)
	f.Say(no)
}

// Refuses says what of the calls with this number whose argument is as tested; for the
// others the filter goes on.
func (f *Filter) Refuses(number uintptr, argument int, test uint16, k uint32, what uint32) {
	f.add(Equal, uint32(number), 0, 4)
	f.add(load, uint32(dataArgs+8*argument), 0, 0)
	f.add(test, k, 0, 1)
	f.Say(what)
	f.add(load, dataNumber, 0, 0)
}

// Install puts the process, on all its threads and permanently, and all that it starts
// under the filter, and without a way to gain privileges.
func (f Filter) Install() error {
	runtime.LockOSThread() // what one thread sets here, the filter brings to all
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	return f.InstallUnprivileged()
}

// InstallUnprivileged is Install where NoNewPrivileges has succeeded. It needs no thread of its
// own, for which Go would start another one.
func (f Filter) InstallUnprivileged() error {
	if arch == 0 {
		return errors.New("not available on " + runtime.GOARCH)
	}
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	// With TSYNC a thread that can't be reached is named instead of left out.
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errors.Is(errno, unix.ENOSYS):
		return errors.New("not supported by this kernel")
	case errno != 0:
		return fmt.Errorf("installing the filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("installing the filter: thread %d does not take it", thread)
	}
	return nil
}

// refused are the calls that no server needs and that reach beyond a box: into other
// processes, the kernel, other namespaces, the keys of the session.
var refused = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_FANOTIFY_INIT, unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// namespaceFlags make a new process that has namespaces of its own.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// sockets are those that a box leaves, besides pairs.
type sockets struct {
	internet bool // of TCP and UDP; a network of its own needs no refusal
	local    bool // Unix sockets; a root of its own has none of the machine's
}

// filter is the filter of a server.
func filter(s sockets) Filter {
	f := NewFilter(Missing)
	for _, number := range refused {
		f.Call(number, Refuse)
	}
	f.Refuses(unix.SYS_CLONE, 0, Bits, namespaceFlags, Refuse)
	f.Call(unix.SYS_CLONE3, Missing) // its flags can't be seen; libraries then use clone
	for _, what := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		f.Refuses(unix.SYS_IOCTL, 1, Equal, what, Refuse)
	}
	// Of sockets, those that programs use.
	const denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	families := []struct {
		family uint32
		leave  bool
	}{{unix.AF_UNIX, s.local}, {unix.AF_INET, s.internet}, {unix.AF_INET6, s.internet}}
	f.add(Equal, unix.SYS_SOCKET, 0, uint8(1+2*len(families)+5))
	f.add(load, dataArgs, 0, 0)
	for _, k := range families {
		what := uint32(GoOn)
		if !k.leave {
			what = denied
		}
		f.add(Equal, k.family, 0, 1)
		f.Say(what)
	}
	// The kernel tells about the network by one, and about much else by its others.
	f.add(Equal, unix.AF_NETLINK, 0, 3)
	f.add(load, dataArgs+2*8, 0, 0)
	f.add(Equal, unix.NETLINK_ROUTE, 0, 1)
	f.Say(GoOn)
	f.Say(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT))
	f.Say(GoOn)
	return f
}
