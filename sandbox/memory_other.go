//go:build unix && !linux && !darwin

package sandbox

// machineMemory is not known here.
func machineMemory() (int64, bool) { return 0, false }
