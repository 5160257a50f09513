//go:build !linux && !darwin

package cli

import "os"

// Drain does nothing on this system: what was typed before is read.
func Drain(*os.File) error { return nil }
