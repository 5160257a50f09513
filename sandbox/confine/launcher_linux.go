package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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

	Namespaces bool `json:"namespaces"` // it has them
	Root       bool `json:"root"`       // it shall make a root of its own
	Watch      bool `json:"watch"`      // no box: what the program uses is noted
}

// An answer is what the launcher says before it starts the program.
type answer struct {
	Steps   Steps       `json:"steps"`
	Failed  string      `json:"failed"`  // why there is no program
	Root    bool        `json:"root"`    // because it could not make a root
	Lacking bool        `json:"lacking"` // because the box is required and not all of it holds
	Sockets []described `json:"sockets"` // passed on with the answer
}

// Main is the launcher. It returns when it could not start the program, or with the
// program's end.
func Main() (code int) {
	file := os.NewFile(control, "control")
	unix.CloseOnExec(control)
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
	pid, err := syscall.ForkExec(o.Path, o.Args, &syscall.ProcAttr{Dir: o.Dir, Env: environ(o), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting %s in its box: %v\n", o.Path, err)
		return 127
	}
	// The bridge holds the other end as long as it lives.
	go func() {
		io.Copy(io.Discard, file)
		os.Exit(1)
	}()
	for _, fd := range []int{0, 1, 2} {
		unix.Close(fd) // they are the program's now, and end with it
	}
	return outlive(pid)
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

// environ is the program's environment: temporary files go where the box has a place
// for them.
func environ(o order) []string {
	if !o.Root {
		return os.Environ()
	}
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "TMPDIR" {
			env = append(env, entry)
		}
	}
	return append(env, "TMPDIR=/tmp")
}

// enter takes the steps, in an order in which each can still be taken.
func (o order) enter() (a answer, fds []int) {
	if o.Watch {
		return o.watch()
	}
	a.Steps = make(Steps)
	if o.Root {
		if err := newRoot(o.Box, o.Dir, o.Home); err != nil {
			a.Failed, a.Root = err.Error(), true
			return a, nil
		}
		a.Steps.record(Files, nil)
	}
	if o.Namespaces {
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
	a.Steps.record(Limits, limits())
	a.Steps.record(Landlock, restrict(o.access()))
	a.Steps.record(Powers, dropPowers())
	noSockets := o.Box.Net.None() && !o.Namespaces
	err := filter(noSockets).Install()
	a.Steps.record(Calls, err)
	if noSockets {
		a.Steps.record(Network, err)
	}
	if o.Box.Require && len(o.Box.Lacks(a.Steps)) > 0 {
		a.Failed, a.Lacking = "the box is required", true
	}
	return a, fds
}

// access is what Landlock leaves. In a root of its own that is all that it holds, and
// what is only there for this box may be written.
func (o order) access() access {
	a := access{write: append([]string{"/dev"}, o.Box.Write...), anyNet: o.Namespaces || !o.Box.Net.None()}
	if o.Root {
		a.read = []string{"/"}
		a.write = append(a.write, scratch...)
		a.write = append(a.write, o.Home)
		a.run = []string{"/"}
	} else {
		a.read = append(a.read, "/etc", "/proc", "/dev", "/sys")
		a.read = append(a.read, o.Box.Read...)
		a.run = append(append(append(a.run, systemFolders...), o.Box.Read...), o.Box.Write...)
	}
	if o.Box.Run != nil {
		a.read = append(a.read, a.run...)
		a.run = append([]string{o.Path}, o.Box.Run...)
	}
	return a
}

// limits bounds what one process of the box can take.
func limits() error {
	none := &unix.Rlimit{}
	return unix.Setrlimit(unix.RLIMIT_CORE, none)
}

// dropPowers gives up all capabilities, and the ways to get them again.
func dropPowers() error {
	if err := NoNewPrivileges(); err != nil {
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
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, noRoot, 0); err != nil {
		return fmt.Errorf("giving up root's powers: %w", err)
	}
	for power := range uintptr(64) {
		err := everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, power, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		}
		if err != nil {
			return fmt.Errorf("giving up capability %d: %w", power, err)
		}
	}
	if err := everyThread(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil {
		return fmt.Errorf("giving up ambient capabilities: %w", err)
	}
	var nothing [2]unix.CapUserData
	return everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&nothing[0])), 0)
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
