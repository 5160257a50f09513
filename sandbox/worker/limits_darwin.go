package worker

import "golang.org/x/sys/unix"

// harden bounds what this system lets a process bound for itself. None of
// that keeps it from opening what its user can open; it has no code that does.
// Memory is bounded by the monitor alone.
func harden(heap int64) map[string]string {
	steps := map[string]string{"confinement": "not available on this system"}
	for _, s := range []struct {
		name     string
		resource int
		n        uint64
	}{
		{"no-core-dump", unix.RLIMIT_CORE, 0},
		{"small-files", unix.RLIMIT_FSIZE, 1 << 20}, // stderr may be one
		{"few-descriptors", unix.RLIMIT_NOFILE, 8},  // pipes, and what the runtime polls with
	} {
		steps[s.name] = "on"
		limit := unix.Rlimit{Cur: s.n, Max: s.n}
		if err := unix.Setrlimit(s.resource, &limit); err != nil {
			steps[s.name] = err.Error()
		}
	}
	return steps
}

func closeInherited() {} // the parent passes nothing on
