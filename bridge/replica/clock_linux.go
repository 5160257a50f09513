package replica

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is a clock that nobody sets. It goes on while the machine is suspended, which
// that of package time does not.
func elapsed() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return time.Since(started)
	}
	return time.Duration(at.Nano())
}
