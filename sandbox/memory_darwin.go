package sandbox

import "golang.org/x/sys/unix"

// machineMemory returns all that the machine has.
func machineMemory() (int64, bool) {
	n, err := unix.SysctlUint64("hw.memsize")
	return int64(n), err == nil && n > 0
}
