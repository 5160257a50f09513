//go:build !linux

package replica

import "time"

// counted is a clock that nobody sets. It may stand still while the machine is suspended.
func counted() time.Duration { return time.Since(started) }
