package confine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Delegation is a folder of the control group tree that was delegated to us: each
// worker and each box gets a group in it, beside our own.
//
// It is the folder above our own group. A group that contains processes can't enable
// the memory controller for its children, so whoever starts us must put us one level
// below what it delegates; systemd does with
//
//	Delegate=memory pids
//	DelegateSubgroup=bridge
type Delegation struct {
	folder string
	err    error                         // why there is none
	write  func(name, text string) error // nil: put
}

// Delegated finds our delegation, once.
var Delegated = sync.OnceValue(func() Delegation {
	return findDelegation("/sys/fs/cgroup", "/proc/self/cgroup")
})

var errNotDelegated = errors.New("no control group is delegated to this program")

// findDelegation looks in the tree below root for the group that the file own
// names, in the form of /proc/self/cgroup.
func findDelegation(root, own string) Delegation {
	b, err := os.ReadFile(own)
	if err != nil {
		return Delegation{err: errors.New("not supported by this kernel")}
	}
	for line := range strings.Lines(string(b)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok || path == "" {
			continue
		}
		folder := filepath.Dir(filepath.Join(root, path))
		if folder == root || !isDelegated(folder) {
			continue
		}
		if err := handOn(folder); err != nil {
			return Delegation{err: fmt.Errorf("handing memory and pids on: %w", err)}
		}
		return Delegation{folder: folder}
	}
	return Delegation{err: errNotDelegated}
}

// isDelegated reports whether a folder was delegated to us. Root may write anywhere,
// so being able to write proves nothing; systemd marks what it delegates.
func isDelegated(folder string) bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(folder, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return os.Geteuid() != 0 && unix.Access(folder, unix.W_OK) == nil &&
		unix.Access(filepath.Join(folder, "cgroup.subtree_control"), unix.W_OK) == nil
}

// handOn makes limits of memory and processes available to the folder's groups.
func handOn(folder string) error {
	control := filepath.Join(folder, "cgroup.subtree_control")
	b, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	has := strings.Fields(string(b))
	if slices.Contains(has, "memory") && slices.Contains(has, "pids") {
		return nil
	}
	return put(control, "+memory +pids")
}

// put writes to an existing file.
func put(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// A Group is a control group of one program and what it starts.
type Group struct {
	folder *os.File
	write  func(name, text string) error
}

// Bounds is what a group may take.
type Bounds struct {
	Memory    int64 // bytes
	Swap      int64 // bytes
	Processes int   // threads counted
}

var groupNumber atomic.Int64

// NewGroup makes a group that may take no more than its bounds, and whose processes end
// together when they reach that of memory. Its name begins as given.
func (d Delegation) NewGroup(name string, b Bounds) (*Group, error) {
	if d.folder == "" {
		return nil, cmp.Or(d.err, errNotDelegated)
	}
	write := d.write
	if write == nil {
		write = put
	}
	path := filepath.Join(d.folder, fmt.Sprintf("%s-%d-%d", name, os.Getpid(), groupNumber.Add(1)))
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("making a control group: %w", err)
	}
	for _, limit := range []struct {
		file, value string
		optional    bool
	}{
		{"memory.max", strconv.FormatInt(b.Memory, 10), false},
		{"pids.max", strconv.Itoa(b.Processes), false},
		{"memory.swap.max", strconv.FormatInt(b.Swap, 10), true}, // missing on systems without swap
		{"memory.oom.group", "1", true},
	} {
		err := write(filepath.Join(path, limit.file), limit.value)
		if err != nil && !limit.optional {
			os.Remove(path)
			return nil, fmt.Errorf("limiting a control group: %w", err)
		}
	}
	folder, err := os.Open(path)
	if err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("opening a control group: %w", err)
	}
	return &Group{folder, write}, nil
}

// FD is a descriptor of the group's folder, which starts a process in it.
func (g *Group) FD() int { return int(g.folder.Fd()) }

// Add moves a process into the group. What it starts from then on belongs there too.
func (g *Group) Add(pid int) error {
	return g.write(filepath.Join(g.folder.Name(), "cgroup.procs"), strconv.Itoa(pid))
}

// Remove removes the group. Its processes have ended or are about to; one that does not
// is killed.
func (g *Group) Remove() {
	defer g.folder.Close()
	path := g.folder.Name()
	const patience = 64 * time.Millisecond
	for wait := time.Millisecond; errors.Is(os.Remove(path), unix.EBUSY) && wait < time.Second; wait *= 2 {
		if wait >= patience {
			_ = g.write(filepath.Join(path, "cgroup.kill"), "1") // since Linux 5.14
		}
		time.Sleep(wait)
	}
}
