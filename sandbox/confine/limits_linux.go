package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostSwap bounds the swap of a box with a control group. An idle box may be swapped out in
// part, and one that runs wild can't fill the swap.
const mostSwap = 1 << 30

// group puts the launcher, which has no order yet, into a control group of its own.
func (o order) group(launcher int) (*Group, error) {
	g, err := o.delegation.NewGroup("codemode-box", Bounds{Memory: o.memory, Swap: o.swap, Processes: o.Most})
	if err != nil {
		return nil, err
	}
	if err := g.Add(launcher); err != nil {
		g.Remove()
		return nil, fmt.Errorf("moving into a control group: %w", err)
	}
	return g, nil
}

// limits bounds what the box can take of the machine. Where memory gets short, the box ends
// before the rest.
func (o order) limits() error {
	var missing []string
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		missing = append(missing, "core dumps are not refused: "+err.Error())
	}
	if err := o.processes(); err != nil {
		missing = append(missing, "processes are not bounded: "+err.Error())
	}
	if o.Group != "" {
		missing = append(missing, "memory is not bounded: "+o.Group)
	}
	if o.last != nil {
		missing = append(missing, "it does not end first when memory is short: "+o.last.Error())
	}
	if missing != nil {
		return errors.New(strings.Join(missing, "; "))
	}
	return nil
}

// processes bounds the processes of the box. A control group does, and so does a kernel that
// counts process numbers by namespace (see fewProcesses), or processes of a user: both
// need a namespace, and the latter leaves root alone.
func (o order) processes() error {
	if o.Group == "" {
		return nil
	}
	if !o.Namespaces || !kernel(5, 14) {
		return errors.New("this kernel counts those of the user everywhere")
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: uint64(o.Most), Max: uint64(o.Most)}); err != nil {
		return err
	}
	if os.Getuid() == 0 && !kernel(6, 14) {
		return errors.New("this kernel does not bound those of root")
	}
	return nil
}

// fewProcesses bounds the process numbers of this namespace, whose /proc is at a path. An
// older kernel would change those of the machine.
func (o order) fewProcesses(proc string) error {
	if !kernel(6, 14) {
		return nil
	}
	f, err := os.OpenFile(proc+"/sys/kernel/pid_max", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(o.Most))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("bounding its processes: %w", err)
	}
	return nil
}

// endFirst asks the system to end what this process starts before others when its memory is
// short.
func endFirst() error {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("500")
	return errors.Join(err, f.Close())
}

// kernel reports whether this kernel has at least a version.
func kernel(major, minor int) bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	return atLeast(unix.ByteSliceToString(name.Release[:]), major, minor)
}

// atLeast reports whether a release, "6.8.0-41-generic", is at least a version.
func atLeast(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	has, err := strconv.Atoi(first)
	if err != nil || has != major {
		return err == nil && has > major
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	has, err = strconv.Atoi(rest[:end])
	return err == nil && has >= minor
}
