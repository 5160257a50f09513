//go:build !linux

package main

// keepDescriptors does nothing: this system has no way to mark all descriptors
// that a program was started with.
func keepDescriptors() {}
