package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codemode-bridge/sandbox/confine"
)

// namespaces are what a worker has of its own: users, so that it is nobody
// and has no capability outside; a network without interfaces; process
// numbers, so that it sees none but its own; message queues; a host name.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// inOurMemory has a new process use this one's memory, and this thread wait for it, until
// its own program is loaded, as posix_spawn(3) does. Package syscall does so by itself, but not for
// a process with a namespace of users: its parent may have to write the mappings of such a one
// meanwhile, and a worker has none. Without it the kernel copies the tables of all our memory and,
// page by page, what is written to until the copy is thrown away: for a bridge with 1,000 sessions
// that is half of what a worker costs.
const inOurMemory = syscall.CLONE_VM | syscall.CLONE_VFORK

// refused are the steps that this system did not allow, with its reasons. They
// are not tried again, which would cost every start some time.
var refused struct{ namespaces, cgroup, inOurMemory atomic.Pointer[string] }

// A cage is what the system holds one process in, from outside.
type cage struct {
	steps      map[string]string // what confines it, for wire.Ready
	namespaces bool
	copied     bool // it starts in a copy of our memory
	group      *confine.Group
	kills      int64 // that the system made because memory ran out, before it began
}

// maxThreads bounds the threads of a worker. Go starts one for each processor
// and each system call that blocks.
const maxThreads = 256

// newCage prepares a cage as tight as this system allows.
func newCage(heap int64) *cage {
	c := &cage{steps: map[string]string{"namespaces": "on", "cgroup": "on"}, namespaces: true, kills: lately.kills(time.Now(), memoryKills)}
	c.copied = refused.inOurMemory.Load() != nil
	if why := refused.namespaces.Load(); why != nil {
		c.namespaces, c.steps["namespaces"] = false, *why
	}
	if why := refused.cgroup.Load(); why != nil {
		c.steps["cgroup"] = *why
		return c
	}
	var err error
	if c.group, err = confine.Delegated().NewGroup("codemode-worker", confine.Bounds{Memory: memoryMax(heap), Processes: maxThreads}); err != nil {
		c.refuse(&refused.cgroup, "cgroup", err)
	}
	return c
}

func (c *cage) refuse(where *atomic.Pointer[string], step string, err error) {
	why := err.Error()
	c.steps[step] = why
	where.Store(&why)
}

// confine puts the process into the cage, gives it a session of its own, so
// that no signal meant for us reaches it, and its death when we die.
func (c *cage) confine(cmd *exec.Cmd) {
	a := &syscall.SysProcAttr{
		Setsid: true,
		// The signal comes when the *thread* that forked ends. Go ends a thread
		// only if a goroutine dies locked to it, which none of ours does; a worker
		// that got the signal early would cost its run and no more. What ends a
		// worker for certain is the end of its stdin.
		Pdeathsig: syscall.SIGKILL,
	}
	if c.namespaces {
		a.Cloneflags = namespaces // no user is mapped: it runs as nobody
		if !c.copied {
			a.Cloneflags |= inOurMemory
		}
	}
	if c.group != nil {
		a.UseCgroupFD, a.CgroupFD = true, c.group.FD()
	}
	cmd.SysProcAttr = a
}

// started ends the preparation: the process runs, or err says why it does
// not. It reports whether to try again in a wider cage.
func (c *cage) started(_ *exec.Cmd, err error) (again bool) {
	var errno syscall.Errno
	switch errors.As(err, &errno); errno {
	case syscall.EPERM, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS, syscall.EUSERS, syscall.EBUSY, syscall.EOPNOTSUPP:
	default:
		return false
	}
	switch {
	case c.group != nil:
		c.close()
		c.group = nil
		c.refuse(&refused.cgroup, "cgroup", errno)
	case c.namespaces && !c.copied: // a system that does not know the two together
		c.copied = true
		why := errno.Error()
		refused.inOurMemory.Store(&why)
	case c.namespaces:
		c.namespaces = false
		c.refuse(&refused.namespaces, "namespaces", errno)
	default:
		return false
	}
	return true
}

// killedForMemory reports whether the system has killed processes since the
// cage was made because it ran out of memory.
func (c *cage) killedForMemory() bool { return memoryKills() > c.kills }

// close removes the cage after its process has ended.
func (c *cage) close() {
	if c.group != nil {
		c.group.Remove()
	}
}

func emptyDir() string { return "/" }

// lately remembers a count of such kills for countEvery, since to count takes the kernel longer
// than a quick worker's whole run. A kill in between may be blamed for the end of a
// worker that began after it, and that something else has killed.
var lately killCount

const countEvery = time.Second

type killCount struct {
	mu    sync.Mutex
	at    time.Time
	count int64
}

// kills returns what count says, or said not long ago.
func (k *killCount) kills(now time.Time, count func() int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() || now.Sub(k.at) >= countEvery {
		k.at, k.count = now, count()
	}
	return k.count
}

// memoryKills counts the processes that the kernel has killed because memory
// ran out, in whatever control group.
func memoryKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return killsIn(b)
}

// killsIn reads the number from the text of /proc/vmstat.
func killsIn(b []byte) int64 {
	_, rest, ok := bytes.Cut(b, []byte("\noom_kill "))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.ParseInt(string(line), 10, 64)
	return n
}

// processorTime returns how much processor time a process has used on all its
// threads: from its own clock, which clock_getcpuclockid(3) numbers like this, or
// else from /proc, which is coarser.
func processorTime(pid int) (time.Duration, bool) {
	const perProcess = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &t); err == nil {
		return time.Duration(t.Nano()), true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	return timeInStat(b)
}

// clockTick is the unit of /proc/PID/stat. It is 100 Hz on every Linux that
// Go runs on.
const clockTick = 10 * time.Millisecond

// timeInStat reads the user and system time from the text of /proc/PID/stat.
func timeInStat(b []byte) (time.Duration, bool) {
	// The second field is a name in parentheses that may hold anything.
	i := bytes.LastIndexByte(b, ')')
	fields := bytes.Fields(b[i+1:])
	const utime, stime = 14 - 3, 15 - 3
	if i < 0 || len(fields) <= stime {
		return 0, false
	}
	u, err1 := strconv.ParseInt(string(fields[utime]), 10, 64)
	s, err2 := strconv.ParseInt(string(fields[stime]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return time.Duration(u+s) * clockTick, true
}
