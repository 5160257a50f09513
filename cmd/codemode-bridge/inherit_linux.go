package main

import "golang.org/x/sys/unix"

// keepDescriptors marks every descriptor that this program was started with,
// beside the standard ones, as not to be passed on: a worker has its pipes and
// nothing else, and so has a server.
func keepDescriptors() {
	// A kernel without close_range leaves them as they are; workers close
	// nothing by themselves, but can then use only what a parent of ours left open.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}
