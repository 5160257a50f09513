package worker

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"codemode-bridge/sandbox/confine"

	"golang.org/x/sys/unix"
)

// slack is what the process needs besides the heap: Go's own tables, stacks,
// and what has been freed and not yet given back.
const slack = 128 << 20

// harden confines the process, each step best effort, and reports each. It
// runs after Hello, when everything that is needed is loaded and open; none
// of it can be undone.
func harden(heap int64) map[string]string {
	steps := make(map[string]string)
	step := func(name string, err error) {
		steps[name] = "on"
		if err != nil {
			steps[name] = err.Error()
		}
	}
	limit := func(resource int, n uint64) error {
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n})
	}
	step("first-when-memory-is-short", preferForKilling()) // impossible after not-dumpable
	step("parent-death-signal", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	step("not-dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	install := confine.Filter.InstallUnprivileged
	unprivileged := confine.NoNewPrivileges()
	if unprivileged != nil {
		install = confine.Filter.Install
	}
	step("no-new-privileges", unprivileged)
	// RLIMIT_DATA stops one huge allocation in native code, between two looks
	// of the monitor. RLIMIT_AS is of no use: Go reserves far more than it takes.
	if limitData {
		step("memory-limit", limit(unix.RLIMIT_DATA, uint64(2*heap+slack)))
	}
	step("no-core-dump", limit(unix.RLIMIT_CORE, 0))
	step("small-files", limit(unix.RLIMIT_FSIZE, 1<<20)) // stderr may be one
	// 0, 1 and 2 are open, and what the runtime polls with.
	step("few-descriptors", limit(unix.RLIMIT_NOFILE, 8))
	step("landlock", confine.Closed())
	if limitData {
		step("seccomp", install(seccompFilter(uint32(os.Getpid())))) // the last: it refuses all of the above
	}
	return steps
}

// closeInherited leaves the process its pipes and the runtime's poller. The runtime's
// other descriptors, for the limits of its control group, are no longer needed (see
// Main).
func closeInherited() {
	const folder = "/proc/self/fd/"
	list, err := os.ReadDir(folder)
	if err != nil {
		return // the parent passes nothing on
	}
	for _, entry := range list {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if what, err := os.Readlink(folder + entry.Name()); err == nil && !strings.HasPrefix(what, "anon_inode:") {
			unix.Close(fd)
		}
	}
}

// preferForKilling asks the system to end this process before others when its
// memory is short: it holds nothing that anybody needs.
func preferForKilling() error {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("1000")
	return errors.Join(err, f.Close())
}
