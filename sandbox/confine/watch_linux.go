package confine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sockets of a watched program, besides those of a box.
const (
	notices SocketKind = "notices" // tells of system calls
	spare   SocketKind = "spare"   // TCP in its network, without an address
)

// spareSockets is on how many ports a watched program can be served.
const spareSockets = 24

type watching struct {
	notices *os.File
	ending  *os.File // can be read when end is closed, by Close
	end     *os.File
	spare   []*os.File
	done    sync.WaitGroup
}

// Watch starts a program without a box, which waits until Follow is called. It has a
// network of its own where the system allows that, in which every address leads to the
// sockets of Program and of Listen; whoever calls Watch serves those.
func Watch(launcher string, command func() *exec.Cmd) (*Watched, error) {
	w := &Watched{Own: true}
	var err error
	if w.ending, w.end, err = os.Pipe(); err != nil {
		return nil, err
	}
	inGroup := func() *exec.Cmd {
		cmd := command()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the bridge
		return cmd
	}
	w.Program, err = order{Watch: true, Namespaces: true}.start(launcher, inGroup())
	var no *refusedError
	if errors.As(err, &no) {
		w.Own, w.Why = false, no.Error()
		w.Program, err = order{Watch: true, Box: Box{Net: Net{Any: true}}}.start(launcher, inGroup())
	}
	if err != nil {
		w.end.Close()
		w.ending.Close()
		return nil, err
	}
	w.Temp = w.temp.folder
	var rest []Socket
	for _, s := range w.Sockets {
		switch s.Kind {
		case notices:
			w.notices = s.File
		case spare:
			w.spare = append(w.spare, s.File)
		default:
			rest = append(rest, s)
		}
	}
	w.Sockets = rest
	if w.notices == nil {
		w.Close()
		return nil, errors.New("the launcher passed on no notices of system calls")
	}
	return w, nil
}

// Follow calls seen with what the program uses, one at a time, from a goroutine that ends
// with Close. The program waits until seen returns.
func (w *Watched) Follow(seen func(Use)) {
	w.done.Go(func() { attend(w.notices, w.ending, seen) })
}

// Listen makes a socket in the program's network that listens for connections to a port
// of any address. It fails where the program listens itself.
func (w *Watched) Listen(port uint16) (Socket, error) {
	if len(w.spare) == 0 {
		return Socket{}, fmt.Errorf("a watched program can be served on %d ports", spareSockets)
	}
	file := w.spare[0]
	fd := int(file.Fd())
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port)}); err != nil {
		return Socket{}, fmt.Errorf("listening for port %d: %w", port, err)
	}
	w.spare = w.spare[1:]
	if err := errors.Join(unix.Listen(fd, 128), unix.SetNonblock(fd, true)); err != nil {
		file.Close()
		return Socket{}, fmt.Errorf("listening for port %d: %w", port, err)
	}
	return Socket{File: file, Kind: Relay, Port: port}, nil
}

// Close ends the program and all that it started, and returns when nothing more is seen
// of it.
func (w *Watched) Close() {
	w.Program.Close()
	if !w.Own { // what it started does not end with the launcher
		unix.Kill(-w.Cmd.Process.Pid, unix.SIGKILL)
	}
	w.end.Close()
	w.done.Wait()
	w.ending.Close()
	if w.notices != nil {
		w.notices.Close()
	}
	for _, s := range w.spare {
		s.Close()
	}
}

// watch is what the launcher does instead of the steps of a box.
func (o order) watch() (a answer, fds []int) {
	a.Steps = make(Steps)
	fail := func(doing string, err error) (answer, []int) {
		a.Failed = fmt.Sprintf("%s: %v", doing, err)
		for _, fd := range fds {
			unix.Close(fd)
		}
		return a, nil
	}
	if o.Namespaces {
		if err := ownNames(); err != nil {
			return fail("giving it names of its own", err)
		}
		var err error
		if fds, a.Sockets, err = network(Net{Hosts: []Host{{Name: "any", Port: 443}, {Name: "any", Port: 80}}}); err != nil {
			return fail("giving it a network of its own", err)
		}
		if err := local(netip.PrefixFrom(netip.IPv4Unspecified(), 0)); err != nil {
			return fail("leading all addresses here", err)
		}
		for range spareSockets {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return fail("making sockets", err)
			}
			fds, a.Sockets = append(fds, fd), append(a.Sockets, described{Kind: spare})
		}
		a.Steps.record(Network, nil)
	}
	if err := dropPowers(); err != nil {
		return fail("giving up its powers", err)
	}
	// The bridge reads the arguments of this process, too, when it starts the program.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fail("showing the launcher", err)
	}
	fd, err := watchFilter().notify()
	if err != nil {
		return fail("watching system calls", err)
	}
	fds, a.Sockets = append(fds, fd), append(a.Sockets, described{Kind: notices})
	return a, fds
}

// ownNames sends questions about names to the bridge, and shows the processes of this
// namespace. The rest of the machine's files stay.
func ownNames() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leaving the machine's mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("showing its own processes: %w", err)
	}
	target, err := filepath.EvalSymlinks(resolver)
	if err != nil {
		return fmt.Errorf("finding %s: %w", resolver, err)
	}
	hidden := false
	for _, folder := range answering {
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		if err := unix.Mount("codemode", folder, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", folder, err)
		}
		if filepath.Dir(target) == folder { // which is no folder of the machine any more
			hidden = true
			if err := os.WriteFile(target, []byte(resolving), 0o644); err != nil {
				return err
			}
		}
	}
	if hidden {
		return nil
	}
	return cover(target, resolving)
}

// answering are the folders of programs that answer questions about names by a socket,
// with addresses that lead nowhere in a network of its own.
var answering = []string{"/run/systemd/resolve", "/run/nscd", "/run/avahi-daemon"}

const resolver = "/etc/resolv.conf"

// cover mounts a text over a file.
func cover(path, text string) error {
	const stage = "/tmp"
	if err := unix.Mount("codemode", stage, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, ""); err != nil {
		return fmt.Errorf("making a place for %s: %w", path, err)
	}
	file := filepath.Join(stage, "text")
	err := os.WriteFile(file, []byte(text), 0o644)
	tree := -1
	if err == nil {
		tree, err = unix.OpenTree(unix.AT_FDCWD, file, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	}
	if err := errors.Join(err, unix.Unmount(stage, unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("replacing %s: %w", path, err)
	}
	return nil
}

// Had reports whether every box has a path of the system, to read.
func Had(path string) bool {
	return OfSystem(path) || path == "/etc" || path == resolver || slices.ContainsFunc(settings, func(name string) bool {
		at := "/etc/" + name
		return path == at || strings.HasPrefix(path, at+"/")
	})
}
