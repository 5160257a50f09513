package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// confine gives the child a session of its own, so that no signal meant for
// us reaches it, and its death when we die.
func confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		// The signal comes when the *thread* that forked ends. Go ends a thread
		// only if a goroutine dies locked to it, which none of ours does; a worker
		// that got the signal early would cost its run and no more. What ends a
		// worker for certain is the end of its stdin.
		Pdeathsig: syscall.SIGKILL,
	}
}

func emptyDir() string { return "/" }

// clockTick is the unit of /proc/PID/stat. It is 100 Hz on every Linux that
// Go runs on.
const clockTick = 10 * time.Millisecond

// processorTime reads the user and system time of a process.
func processorTime(pid int) (time.Duration, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
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
