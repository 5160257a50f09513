package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A cage is what the system holds one process in, from outside: a job
// object, which bounds its memory, lets it start no other process, and ends
// it with us.
type cage struct {
	steps map[string]string // what confines it, for wire.Ready
	job   windows.Handle    // zero if there is none
}

// newCage prepares a cage as tight as this system allows.
func newCage(heap int64) *cage {
	c := &cage{steps: make(map[string]string)}
	var err error
	if c.job, err = newJob(uintptr(memoryMax(heap))); err != nil {
		c.steps["job"] = err.Error()
	}
	return c
}

func newJob(memory uintptr) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{ProcessMemoryLimit: memory}
	limits.BasicLimitInformation.ActiveProcessLimit = 1
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS |
		windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// confine gives the child a process group of its own, so that no Ctrl-C meant
// for us reaches it, and no window.
func (c *cage) confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP,
		HideWindow:    true,
	}
}

// started puts the process into its job. Until our first frame the process runs
// no script.
func (c *cage) started(cmd *exec.Cmd, err error) (again bool) {
	if err != nil || c.job == 0 {
		return false
	}
	c.steps["job"] = "on"
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(c.job, process)
		windows.CloseHandle(process)
	}
	if err != nil {
		c.steps["job"] = err.Error()
	}
	return false
}

func (*cage) killedForMemory() bool { return false } // an allocation fails instead

// close removes the cage after its process has ended.
func (c *cage) close() {
	if c.job != 0 {
		windows.CloseHandle(c.job)
	}
}

func emptyDir() string { return os.TempDir() }

// processorTime returns how much processor time a process has used on all its
// threads.
func processorTime(pid int) (time.Duration, bool) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return 0, false
	}
	defer windows.CloseHandle(process)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return 0, false
	}
	span := func(t windows.Filetime) time.Duration { // in steps of 100 ns
		return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
	}
	return span(kernel) + span(user), true
}

// measuresMemory says whether residentMemory knows.
const measuresMemory = false

func residentMemory(int) (int64, bool) { return 0, false }
