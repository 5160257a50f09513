//go:build race

package worker

// limitData is off: the race detector takes many times the program's memory, and
// makes system calls of its own.
const limitData = false
