//go:build !linux && !darwin

package worker

// harden has nothing to do here. On Windows the parent starts the process in
// a job object, which bounds its memory and lets it start no other. It can
// open what its user can, and has no code that does.
func harden(heap int64) map[string]string {
	return map[string]string{"confinement": "not available on this system"}
}

func closeInherited() {} // on Windows a process inherits only the handles it is given
