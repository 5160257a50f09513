package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTimeout is how long the launcher may take until the program starts: on a busy
// machine seconds. One that ends is noticed at once.
const startTimeout = time.Minute

// namespaces are what a server has of its own: users, so that it has no power outside;
// mounts; process numbers; message queues; a host name.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// powers are the capabilities that the launcher needs in its namespaces, and gives up.
var powers = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}

// Start starts a program in the tightest box that the system allows. The command is made
// anew for each try, as it would be started without a box.
func (b Box) Start(launcher string, command func() *exec.Cmd) (*Program, error) {
	reasons := make(Steps)
	try, err := b.order()
	if err != nil {
		return nil, err
	}
	for {
		p, err := try.start(launcher, command())
		if err == nil {
			explain(p.Steps, reasons)
			return p, nil
		}
		var no *refusedError
		if !errors.As(err, &no) {
			return nil, err
		}
		if no.lacking != nil {
			explain(no.lacking, reasons)
			return nil, &LacksError{b.Lacks(no.lacking)}
		}
		why := no.Error()
		switch {
		case no.root && try.Root:
			try.Root = false
			reasons[Files] = why
		case try.Namespaces:
			try.Namespaces, try.Root = false, false
			reasons[Processes] = why
			if reasons[Files] == "" {
				reasons[Files] = why
			}
			if !b.Net.Any && !b.Net.None() {
				reasons[Network] = why
			}
		default:
			return nil, err
		}
	}
}

// explain adds to the steps of the last try why those of others do not hold.
func explain(steps, reasons Steps) {
	for step, why := range reasons {
		if !steps.On(step) {
			steps[step] = why
		}
	}
}

// order asks for all steps.
func (b Box) order() (order, error) {
	places, links, err := b.places()
	return order{
		Box: b, Namespaces: true, Root: true, Places: places, Links: links, Most: mostProcesses,
		delegation: Delegated(), memory: mostMemory, swap: mostSwap,
	}, err
}

// A refusedError says that the system does not allow a step.
type refusedError struct {
	err     error
	root    bool
	lacking Steps // that do not suffice for a box that is required
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// start tries once.
func (o order) start(launcher string, cmd *exec.Cmd) (_ *Program, err error) {
	o.Path, o.Args, o.Dir, o.Home = cmd.Path, cmd.Args, cmd.Dir, variable(cmd.Env, "HOME")
	if o.Dir == "" {
		o.Dir = "/"
	}
	if is, err := os.Stat(o.Dir); err != nil || !is.IsDir() {
		return nil, fmt.Errorf("the program is to start in %s, which is no folder", o.Dir)
	}
	var temp ending
	if !o.Watch && !o.Root {
		if o.Temp, err = os.MkdirTemp("", "codemode-box-"); err != nil {
			return nil, fmt.Errorf("making a place for temporary files: %w", err)
		}
		temp = ending{folder: o.Temp}
		defer func() {
			if err != nil {
				temp.Close()
			}
		}()
	}
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	defer func() {
		if err != nil {
			ours.Close()
		}
	}()
	cmd.Path, cmd.Args, cmd.Dir = launcher, []string{launcher, "box"}, "/"
	cmd.ExtraFiles = []*os.File{theirs} // the first is descriptor 3
	if o.Namespaces {
		o.confine(cmd)
	}
	if err := cmd.Start(); err != nil {
		if o.Namespaces && isRefusal(err) {
			return nil, &refusedError{err: fmt.Errorf("making namespaces: %w", err)}
		}
		return nil, err
	}
	theirs.Close()
	remove := func() {}
	if !o.Watch {
		if group, err := o.group(cmd.Process.Pid); err != nil {
			o.Group = err.Error()
		} else {
			remove = group.Remove
		}
	}
	a, files, err := o.talk(ours)
	if err == nil && a.Changed {
		err = errors.New(a.Failed)
	} else if err == nil && a.Failed != "" {
		no := &refusedError{err: errors.New(a.Failed), root: a.Root}
		if a.Lacking {
			no.lacking = a.Steps
		}
		err = no
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		remove()
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	p := &Program{Cmd: cmd, Steps: a.Steps, control: ours, temp: temp, remove: remove}
	for i, s := range a.Sockets {
		p.Sockets = append(p.Sockets, Socket{File: files[i], Kind: s.Kind, Port: s.Port})
	}
	return p, nil
}

// pair makes a connection: ours waits with the runtime's poller, theirs as programs do.
func pair() (ours, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(ends[0]), "box"), os.NewFile(uintptr(ends[1]), "box"), nil
}

// confine gives the launcher its namespaces, and in them who it is outside.
func (o order) confine(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	a := cmd.SysProcAttr
	a.Cloneflags |= namespaces
	if !o.Box.Net.Any {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	a.AmbientCaps = powers
}

func isRefusal(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS, syscall.EUSERS, syscall.EOPNOTSUPP,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// talk sends the order, and reads the answer with the sockets that come with it.
func (o order) talk(conn *os.File) (a answer, files []*os.File, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return a, nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return a, nil, err
	}
	if _, err := conn.Write(frame(b)); err != nil {
		return a, nil, fmt.Errorf("telling the launcher what to do: %w", err)
	}
	r := &rightsReader{conn: conn}
	b, err = readFrame(r)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return a, r.files, fmt.Errorf("the launcher has not made the box within %v", startTimeout)
	case errors.Is(err, io.EOF):
		return a, r.files, errors.New("the launcher ended before it had made the box; it must be the codemode-worker that came with this program")
	case err != nil:
		return a, r.files, fmt.Errorf("reading what the launcher says: %w", err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, r.files, fmt.Errorf("reading what the launcher says: %w", err)
	}
	if len(r.files) != len(a.Sockets) {
		return a, r.files, fmt.Errorf("the launcher passed on %d sockets and not %d", len(r.files), len(a.Sockets))
	}
	return a, r.files, conn.SetDeadline(time.Time{})
}

// A rightsReader reads a connection, and takes the descriptors that come with the bytes.
type rightsReader struct {
	conn  *os.File
	files []*os.File
}

func (r *rightsReader) Read(b []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4*maxSockets))
	var n, used int
	raw, err := r.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, used, _, _, failed = unix.Recvmsg(int(fd), b, rights, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failed, unix.EAGAIN)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:used])
	if err != nil {
		return n, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return n, err
		}
		for _, fd := range fds {
			r.files = append(r.files, os.NewFile(uintptr(fd), "socket of a box"))
		}
	}
	return n, nil
}
