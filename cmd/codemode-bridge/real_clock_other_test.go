//go:build real && !(linux && amd64)

package main_test

import "time"

// clock needs what is known of Linux on amd64 only.
func clock(time.Duration) func(*member) {
	return func(m *member) { m.Skip("the clock of one process can be changed on Linux on amd64 only") }
}
