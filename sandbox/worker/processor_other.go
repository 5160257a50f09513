//go:build !linux && !darwin && !windows

package worker

import "time"

// processorTime is not known here: all time counts.
func processorTime() time.Duration { return time.Since(started) }
