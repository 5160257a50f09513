//go:build !linux

package worker

// harden can confine nothing here beyond what the parent does: the heap
// monitor and the deadlines hold everywhere.
func harden(heap int64) map[string]string {
	return map[string]string{"confinement": "not available on this system"}
}
