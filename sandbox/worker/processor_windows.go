package worker

import (
	"time"

	"golang.org/x/sys/windows"
)

// processorTime returns how much processor time this process has used, on all
// its threads.
func processorTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return time.Since(started)
	}
	span := func(t windows.Filetime) time.Duration { // in steps of 100 ns
		return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
	}
	return span(kernel) + span(user)
}
