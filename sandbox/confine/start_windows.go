package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Start starts a program in a job object, without privileges, and with low integrity if its
// box writes nothing. Nobody has tried that yet, so no step counts as one that holds, and a
// box that is required is refused.
func (b Box) Start(_ string, command func() *exec.Cmd) (*Program, error) {
	steps := b.restricted()
	if b.Require {
		return nil, &LacksError{b.Lacks(steps)}
	}
	temp, err := os.MkdirTemp("", "codemode-box-")
	if err != nil {
		return nil, fmt.Errorf("making a place for temporary files: %w", err)
	}
	folder := ending{folder: temp}
	low := b.low()
	if low {
		if err := label(temp); err != nil {
			low, steps[Files] = false, "its temporary files cannot have low integrity: "+err.Error()
		}
	}
	token, err := newToken(low)
	if err == nil {
		defer token.Close()
	}
	var cmd *exec.Cmd
	start := func() error {
		cmd = command()
		cmd.Env = withTemp(cmd.Environ(), temp)
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = new(syscall.SysProcAttr)
		}
		cmd.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED // until it is in its job
		cmd.SysProcAttr.Token = syscall.Token(token)
		return cmd.Start()
	}
	if err == nil {
		err = start()
	}
	if err != nil { // without the token
		token, steps[Powers] = 0, "no restricted token: "+err.Error()
		if b.low() {
			steps[Files] = steps[Powers]
		}
		if err := start(); err != nil {
			folder.Close()
			return nil, err
		}
	}
	held := &job{process: cmd.Process}
	if held.handle, err = newJob(); err == nil {
		err = held.add(cmd.Process.Pid)
	}
	if err != nil {
		steps[Limits] = "no job object: " + err.Error()
	}
	if err := resume(cmd.Process.Pid); err != nil {
		held.Close()
		_ = cmd.Wait() // it was ended
		folder.Close()
		return nil, fmt.Errorf("letting the program run: %w", err)
	}
	return &Program{Cmd: cmd, Steps: steps, control: held, temp: folder}, nil
}

// A job is a job object, which ends all that is in it when it is closed.
type job struct {
	handle  windows.Handle // zero if there is none
	process *os.Process    // that it was made for
	once    sync.Once
}

// newJob makes a job with bounds on processes and memory. What is in it reaches neither the
// clipboard nor other desktops, nor can it change the person's session.
func newJob() (windows.Handle, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		JobMemoryLimit: uintptr(min(uint64(mostMemory), uint64(^uintptr(0)))),
	}
	limits.BasicLimitInformation.ActiveProcessLimit = mostProcesses
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_JOB_MEMORY | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS |
		windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = session(handle, windows.JOB_OBJECT_UILIMIT_READCLIPBOARD|windows.JOB_OBJECT_UILIMIT_WRITECLIPBOARD|
			windows.JOB_OBJECT_UILIMIT_DESKTOP|windows.JOB_OBJECT_UILIMIT_GLOBALATOMS|windows.JOB_OBJECT_UILIMIT_EXITWINDOWS|
			windows.JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS|windows.JOB_OBJECT_UILIMIT_DISPLAYSETTINGS)
	}
	if err != nil {
		windows.CloseHandle(handle)
		return 0, err
	}
	return handle, nil
}

// session sets what of the person's session a job does not reach.
func session(handle windows.Handle, limits uint32) error {
	ui := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: limits}
	_, err := windows.SetInformationJobObject(handle, windows.JobObjectBasicUIRestrictions,
		uintptr(unsafe.Pointer(&ui)), uint32(unsafe.Sizeof(ui)))
	return err
}

// add puts a process into the job. Where the bridge itself is in one, Windows takes only a
// job that leaves the session alone.
func (j *job) add(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(j.handle, process); err == nil {
		return nil
	}
	if err := session(j.handle, 0); err != nil {
		return err
	}
	return windows.AssignProcessToJobObject(j.handle, process)
}

// Close ends the process and all that is in the job.
func (j *job) Close() error {
	j.once.Do(func() {
		_ = j.process.Kill() // it may be in no job, or gone
		if j.handle != 0 {
			windows.CloseHandle(j.handle)
		}
	})
	return nil
}

var createRestrictedToken = windows.NewLazySystemDLL("advapi32.dll").NewProc("CreateRestrictedToken")

// newToken makes a token of this user without privileges, and if asked with low integrity.
func newToken(low bool) (windows.Token, error) {
	if err := createRestrictedToken.Find(); err != nil {
		return 0, err
	}
	var own, token windows.Token
	const access = windows.TOKEN_DUPLICATE | windows.TOKEN_ASSIGN_PRIMARY | windows.TOKEN_QUERY | windows.TOKEN_ADJUST_DEFAULT
	if err := windows.OpenProcessToken(windows.CurrentProcess(), access, &own); err != nil {
		return 0, err
	}
	defer own.Close()
	const disableMaxPrivilege = 1
	done, _, err := createRestrictedToken.Call(uintptr(own), disableMaxPrivilege, 0, 0, 0, 0, 0, 0, uintptr(unsafe.Pointer(&token)))
	if done == 0 {
		return 0, err
	}
	if !low {
		return token, nil
	}
	sid, err := windows.CreateWellKnownSid(windows.WinLowLabelSid)
	if err == nil {
		level := windows.Tokenmandatorylabel{Label: windows.SIDAndAttributes{Sid: sid, Attributes: windows.SE_GROUP_INTEGRITY}}
		err = windows.SetTokenInformation(token, windows.TokenIntegrityLevel, (*byte)(unsafe.Pointer(&level)), level.Size())
	}
	if err != nil {
		token.Close()
		return 0, fmt.Errorf("lowering its integrity: %w", err)
	}
	return token, nil
}

// label lets programs of low integrity write a folder.
func label(folder string) error {
	descriptor, err := windows.SecurityDescriptorFromString("S:(ML;OICI;NW;;;LW)")
	if err != nil {
		return err
	}
	list, _, err := descriptor.SACL()
	if err != nil {
		return err
	}
	return windows.SetNamedSecurityInfo(folder, windows.SE_FILE_OBJECT, windows.LABEL_SECURITY_INFORMATION, nil, nil, nil, list)
}

// resume lets the threads of a process run that was started suspended.
func resume(pid int) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(all)
	var entry windows.ThreadEntry32
	entry.Size = uint32(unsafe.Sizeof(entry))
	resumed := 0
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != uint32(pid) {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		windows.CloseHandle(thread)
		if err != nil {
			return err
		}
		resumed++
	}
	if resumed == 0 {
		return errors.New("it has no thread")
	}
	return nil
}
