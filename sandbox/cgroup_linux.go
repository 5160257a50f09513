package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A delegation is a folder of the control group tree that was delegated to us: each
// worker gets a group in it, beside our own.
//
// It is the folder above our own group. A group that contains processes can't enable
// the memory controller for its children, so whoever starts us must put us one level
// below what it delegates; systemd does with
//
//	Delegate=memory pids
//	DelegateSubgroup=bridge
type delegation struct {
	folder string
	err    error // why there is none
}

// delegated finds our delegation, once.
var delegated = sync.OnceValue(func() delegation {
	return findDelegation("/sys/fs/cgroup", "/proc/self/cgroup")
})

var errNotDelegated = errors.New("no control group is delegated to this program")

// findDelegation looks in the tree below root for the group that the file own
// names, in the form of /proc/self/cgroup.
func findDelegation(root, own string) delegation {
	b, err := os.ReadFile(own)
	if err != nil {
		return delegation{err: errors.New("not supported by this kernel")}
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
			return delegation{err: fmt.Errorf("handing memory and pids on: %w", err)}
		}
		return delegation{folder: folder}
	}
	return delegation{err: errNotDelegated}
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

// A cgroup is the control group of one worker.
type cgroup struct {
	folder *os.File
}

var groupNumber atomic.Int64

// maxThreads bounds the threads of a worker. Go starts one for each processor
// and each system call that blocks.
const maxThreads = 256

// newGroup makes a group that may take so many bytes of memory and no swap.
func (d delegation) newGroup(memory int64) (*cgroup, error) {
	if d.err != nil {
		return nil, d.err
	}
	path := filepath.Join(d.folder, fmt.Sprintf("codemode-worker-%d-%d", os.Getpid(), groupNumber.Add(1)))
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("making a control group: %w", err)
	}
	for _, limit := range []struct {
		file, value string
		optional    bool
	}{
		{"memory.max", strconv.FormatInt(memory, 10), false},
		{"pids.max", strconv.Itoa(maxThreads), false},
		{"memory.swap.max", "0", true}, // missing on systems without swap
		{"memory.oom.group", "1", true},
	} {
		err := put(filepath.Join(path, limit.file), limit.value)
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
	return &cgroup{folder}, nil
}

// remove removes the group; its process has ended.
func (g *cgroup) remove() {
	os.Remove(g.folder.Name())
	g.folder.Close()
}
