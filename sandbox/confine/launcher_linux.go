package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// control is the descriptor by which the launcher and the bridge speak.
const control = 3

// An order is what the bridge asks of the launcher.
type order struct {
	Box  Box      `json:"box"`
	Path string   `json:"path"` // of the program
	Args []string `json:"args"` // its name first
	Dir  string   `json:"dir"`
	Home string   `json:"home"`

	Places []place `json:"places"` // where the paths of the box lead
	Links  []link  `json:"links"`  // on the way there
	Temp   string  `json:"temp"`   // for temporary files, without a root of its own
	Group  string  `json:"group"`  // why it has no control group; empty: it has one

	Namespaces bool `json:"namespaces"` // it has them
	Root       bool `json:"root"`       // it shall make a root of its own
	Watch      bool `json:"watch"`      // no box: what the program uses is noted

	Most int   `json:"most"` // processes
	last error // why it does not end first when memory is short

	// For its control group, which the bridge makes.
	delegation   Delegation
	memory, swap int64
}

// An answer is what the launcher says before it starts the program.
type answer struct {
	Steps   Steps       `json:"steps"`
	Failed  string      `json:"failed"`  // why there is no program
	Root    bool        `json:"root"`    // because it could not make a root
	Changed bool        `json:"changed"` // because a place or the folder to start in is another one now
	Lacking bool        `json:"lacking"` // because the box is required and not all of it holds
	Sockets []described `json:"sockets"` // passed on with the answer
}

// Main is the launcher. It returns when it could not start the program, or with the
// program's end.
func Main() (code int) {
	runtime.LockOSThread() // this thread starts the program, with all that was taken from it
	last := endFirst()     // impossible later
	// The program will run as the same user, and must not look into this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "hiding the launcher of a box:", err)
		return 2
	}
	// Nothing that this process has but the three is the program's.
	if err := unix.CloseRange(control, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		const most = 1 << 16 // an older kernel has no such call
		for fd := control; fd < most; fd++ {
			unix.CloseOnExec(fd)
		}
	}
	file := os.NewFile(control, "control")
	b, err := readFrame(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "codemode-worker box is started by codemode-bridge alone:", err)
		return 2
	}
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		fmt.Fprintln(os.Stderr, "reading the order:", err)
		return 2
	}
	o.last = last
	a, fds := o.enter()
	if err := say(a, fds); err != nil || a.Failed != "" {
		return 2
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	// The program gets these signals itself, since it is in the same process group.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// Without a namespace of processes, those that lose their parent become this one's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "keeping what the program leaves behind:", err)
		return 2
	}
	// Of Landlock each thread has its own, and one may signal what was started with the same.
	pid, err := syscall.ForkExec(o.Path, o.Args, &syscall.ProcAttr{Dir: o.Dir, Env: o.environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting %s in its box: %v\n", o.Path, err)
		return 127
	}
	for _, fd := range []int{0, 1, 2} {
		unix.Close(fd) // they are the program's now, and end with it
	}
	end := make(chan int, 2)
	go func() { end <- outlive(pid) }()
	go func() {
		io.Copy(io.Discard, file) // the bridge holds the other end as long as it lives
		end <- 1
	}()
	code = <-end
	if !o.Namespaces {
		endAll() // else the kernel does
	}
	return code
}

// outlive waits for the program, and meanwhile for what it left behind.
func outlive(program int) (code int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1
		case pid == program && status.Exited():
			return status.ExitStatus()
		case pid == program && status.Signaled():
			return 128 + int(status.Signal())
		}
	}
}

// endAll ends the children of this process, and theirs, which become its own before those
// are gone. It returns when there are none.
func endAll() {
	for {
		threads, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			return
		}
		for _, name := range threads {
			b, err := os.ReadFile(name)
			if err != nil {
				continue // that thread is gone
			}
			for _, field := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(field); err == nil {
					_ = unix.Kill(pid, unix.SIGKILL) // it may be gone
				}
			}
		}
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); errors.Is(err, unix.ECHILD) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// environ is the program's environment.
func (o order) environ() []string {
	switch {
	case o.Watch:
		return os.Environ()
	case o.Root:
		return o.Box.environ(os.Environ(), "/tmp")
	}
	return o.Box.environ(os.Environ(), o.Temp)
}

// enter takes the steps, in an order in which each can still be taken.
func (o order) enter() (a answer, fds []int) {
	if o.Watch {
		return o.watch()
	}
	a.Steps = make(Steps)
	if o.Root {
		if err := newRoot(o); err != nil {
			var not *changedError
			a.Failed, a.Root, a.Changed = err.Error(), true, errors.As(err, &not)
			return a, nil
		}
		a.Steps.record(Files, nil)
	}
	if o.Namespaces {
		if !o.Root {
			if err := onlyProcesses(o); err != nil {
				a.Failed = err.Error()
				return a, nil
			}
		}
		a.Steps.record(Processes, nil)
		if !o.Box.Net.Any {
			var err error
			if fds, a.Sockets, err = network(o.Box.Net); err != nil {
				a.Failed = err.Error()
				return a, nil
			}
			a.Steps.record(Network, nil)
		}
	}
	a.Steps.record(Limits, o.limits())
	if err := startingThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil { // before Landlock, which demands it of all but root
		a.Failed = "giving up new privileges: " + err.Error()
		return a, fds
	}
	a.Steps.record(Landlock, o.landlock())
	a.Steps.record(Powers, dropPowers())
	noSockets := o.Box.Net.None() && !o.Namespaces
	err := filter(sockets{internet: !noSockets, local: o.Root}).Install()
	a.Steps.record(Calls, err)
	if noSockets {
		a.Steps.record(Network, err)
	}
	if o.Box.Require && len(o.Box.Lacks(a.Steps)) > 0 {
		a.Failed, a.Lacking = "the box is required", true
	}
	return a, fds
}

// landlock restricts files once more. Without a root of its own, all that keeps the box
// from files is this.
func (o order) landlock() error {
	if err := restrict(o.access(), startingThread); err != nil {
		return err
	}
	if read, write := kept(o.Places); read != "" && !o.Root {
		return fmt.Errorf("cannot keep %s from being changed, inside %s", read, write)
	}
	if !o.Root && landlockVersion() < cutting {
		return errors.New("this kernel lets a program empty any file")
	}
	return nil
}

// access is what Landlock leaves. In a root of its own that is all that it holds, and
// what is only there for this box may be written.
func (o order) access() access {
	a := access{write: []string{"/dev"}, anyNet: o.Namespaces || !o.Box.Net.None(), links: o.Root}
	var read []string
	for _, p := range o.Places {
		if p.Write {
			a.write = append(a.write, p.Path)
		} else {
			read = append(read, p.Path)
		}
	}
	if o.Root {
		a.read = []string{"/"}
		a.write = append(a.write, scratch...)
		a.write = append(a.write, o.Home)
		a.run = []string{"/"}
	} else {
		if o.Temp != "" {
			a.write = append(a.write, o.Temp)
		}
		a.write = a.write[1:] // the machine's devices
		for _, name := range devices {
			a.write = append(a.write, filepath.Join("/dev", name))
		}
		a.read = append(a.read, "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/run/systemd/resolve", "/etc/resolv.conf")
		for _, name := range settings {
			a.read = append(a.read, filepath.Join("/etc", name))
		}
		a.run = slices.Concat(systemFolders, read, a.write)
	}
	if o.Box.Run != nil {
		a.read = append(a.read, a.run...)
		a.run = append([]string{o.Path}, o.Box.Run...)
	}
	return a
}

// dropPowers gives up all capabilities, and the ways to get them again.
func dropPowers() error {
	if err := startingThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("looking at capabilities: %w", err)
	}
	if has == ([2]unix.CapUserData{}) {
		return nil
	}
	const noRoot = 1 | 1<<1 | 1<<2 | 1<<3 // SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP, both locked
	if err := startingThread(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, noRoot, 0); err != nil {
		return fmt.Errorf("giving up root's powers: %w", err)
	}
	// From this thread alone, which starts the program: to reach all of them so many times
	// takes seconds where the machine is busy.
	for power := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		}
		if err != nil {
			return fmt.Errorf("giving up capability %d: %w", power, err)
		}
	}
	if err := startingThread(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil {
		return fmt.Errorf("giving up ambient capabilities: %w", err)
	}
	var nothing [2]unix.CapUserData
	return startingThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&nothing[0])), 0)
}

// say sends the answer, and with it the sockets.
func say(a answer, fds []int) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(control, frame(b), rights, nil, 0)
}
