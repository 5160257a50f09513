package main

import "golang.org/x/sys/unix"

// keepDescriptors marks every inherited descriptor but the standard ones as
// close-on-exec, so that workers and servers get their pipes and nothing else.
func keepDescriptors() {
	// An old kernel has no close_range: then children inherit what the program that
	// started us left open, and nothing that we opened ourselves.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}
