package upstream

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// searchable reports that a program in PATH may have an ending (PATHEXT) that
// the command leaves out.
const searchable = false

func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }

func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// A group is a job object that the child and its descendants belong to. What
// the child starts before it is put into the job is not in it.
type group struct{ job windows.Handle }

func newGroup(p *os.Process) group {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var child windows.Handle
		child, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
		if err == nil {
			err = windows.AssignProcessToJobObject(job, child)
			_ = windows.CloseHandle(child)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return group{}
	}
	return group{job: job}
}

// alive reports false: it need not be known, since closing the job ends all that
// is left in it.
func (g group) alive(string) bool { return false }

// terminate does nothing: a process without a console cannot be asked to end
// other than by closing its stdin.
func (group) terminate(string) {}

func (g group) kill(string) {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
}

func (g group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}
