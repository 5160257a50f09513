package replica

import "time"

// SetClock has the package count by the clock of package time from a moment on, until the
// function that it returns is called.
func SetClock(from time.Time) (back func()) {
	was := elapsed
	elapsed = func() time.Duration { return time.Since(from) }
	return func() { elapsed = was }
}
