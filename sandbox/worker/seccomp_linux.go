package worker

import (
	"codemode-bridge/sandbox/confine"

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

// seccompFilter writes the filter of a process, which restricts it to the system calls above,
// as a BPF program:
//
//	another architecture, or x32 numbers       end the process
//	mmap, mprotect                             EPERM if the page could be run
//	clone                                      EPERM unless it starts a thread as Go does
//	clone3                                     ENOSYS, since its flags can't be seen
//	tgkill                                     EPERM unless it is to the process itself
//	allowed                                    go on
//	deadly                                     end the process
//	anything else                              EPERM
func seccompFilter(pid uint32) confine.Filter {
	f := confine.NewFilter(confine.End)
	f.Only(unix.SYS_MMAP, 2, confine.Bits, unix.PROT_EXEC, confine.Refuse, confine.GoOn)
	f.Only(unix.SYS_MPROTECT, 2, confine.Bits, unix.PROT_EXEC, confine.Refuse, confine.GoOn)
	f.Masked(unix.SYS_CLONE, 0, ^uint32(libraryFlags), confine.Equal, threadFlags, confine.GoOn, confine.Refuse)
	f.Call(unix.SYS_CLONE3, confine.Missing)
	f.Only(unix.SYS_TGKILL, 0, confine.Equal, pid, confine.GoOn, confine.Refuse)
	for _, number := range allowed {
		f.Call(number, confine.GoOn)
	}
	for _, number := range deadly {
		f.Call(number, confine.End)
	}
	f.Say(confine.Refuse)
	return f
}
