//go:build linux || darwin

package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns how much processor time this process has used, on all
// its threads.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
