//go:build !linux

package replica

import "time"

// elapsed is a clock that nobody sets. It may stand still while the machine is suspended.
func elapsed() time.Duration { return time.Since(started) }
