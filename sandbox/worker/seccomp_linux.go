package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a Go program that has its pipes open and does nothing
// but read, write, compute and take memory. All others are refused with
// EPERM, so that a runtime that asks for something new finds it missing, as
// on an older kernel.
var allowed = []uintptr{
	// its pipes and the runtime's poller, the most frequent calls first
	unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2,
	// time and the scheduler
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_RESTART_SYSCALL,
	// memory; for mmap and mprotect see seccompFilter
	unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_MINCORE,
	// signals and threads of its own
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	// its end, and randomness
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETRANDOM,
}

// What no such program ever tries. Code that does is no longer ours, and the process
// ends at once; its parent reports it.
var deadly = []uintptr{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_BPF, unix.SYS_IO_URING_SETUP, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_MOUNT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD,
}

// threadFlags are what Go starts a thread with; see runtime/os_linux.go. A C
// library, where one is linked, adds libraryFlags.
const libraryFlags = unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// auditArch is the number by which a filter knows the architecture whose
// system call numbers it was written for. Where there is none, there is no
// filter.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// seccomp restricts the process to the system calls above, on all its threads and
// permanently, and without a way to gain privileges.
func seccomp() error {
	if auditArch == 0 {
		return errors.New("not available on " + runtime.GOARCH)
	}
	runtime.LockOSThread() // what one thread sets here, the filter brings to all
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	filter := seccompFilter(uint32(os.Getpid()))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
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

// Offsets in struct seccomp_data, which a filter reads. Both architectures
// are little endian: the low half of an argument comes first.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// seccompFilter writes the filter of a process as a BPF program:
//
//	another architecture, or x32 numbers       end the process
//	mmap, mprotect                             EPERM if the page could be run
//	clone                                      EPERM unless it starts a thread as Go does
//	clone3                                     ENOSYS, since its flags can't be seen
//	tgkill                                     EPERM unless it is to the process itself
//	allowed                                    go on
//	deadly                                     end the process
//	anything else                              EPERM
func seccompFilter(pid uint32) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		mask   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		bits   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		result = unix.BPF_RET | unix.BPF_K

		goOn   = unix.SECCOMP_RET_ALLOW
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		end    = unix.SECCOMP_RET_KILL_PROCESS
		x32    = 0x40000000
	)
	var p []unix.SockFilter
	add := func(code uint16, k uint32, yes, no uint8) {
		p = append(p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
	}
	// only runs test on one argument of a call, and then goes on or refuses.
	only := func(number uintptr, argument int, code uint16, k uint32, ifTrue, ifFalse uint32) {
		add(equal, uint32(number), 0, 4)
		add(load, uint32(dataArgs+8*argument), 0, 0)
		add(code, k, 0, 1)
		add(result, ifTrue, 0, 0)
		add(result, ifFalse, 0, 0)
	}
	add(load, dataArch, 0, 0)
	add(equal, auditArch, 1, 0)
	add(result, end, 0, 0)
	add(load, dataNumber, 0, 0)
	add(least, x32, 0, 1)
	add(result, end, 0, 0)
	only(unix.SYS_MMAP, 2, bits, unix.PROT_EXEC, refuse, goOn)
	only(unix.SYS_MPROTECT, 2, bits, unix.PROT_EXEC, refuse, goOn)
	add(equal, unix.SYS_CLONE, 0, 5)
	add(load, dataArgs, 0, 0)
	add(mask, ^uint32(libraryFlags), 0, 0)
	add(equal, threadFlags, 0, 1)
	add(result, goOn, 0, 0)
	add(result, refuse, 0, 0)
	add(equal, unix.SYS_CLONE3, 0, 1)
	add(result, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS), 0, 0)
	only(unix.SYS_TGKILL, 0, equal, pid, goOn, refuse)
	for _, number := range allowed {
		add(equal, uint32(number), 0, 1)
		add(result, goOn, 0, 0)
	}
	for _, number := range deadly {
		add(equal, uint32(number), 0, 1)
		add(result, end, 0, 0)
	}
	add(result, refuse, 0, 0)
	return p
}
