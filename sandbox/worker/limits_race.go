//go:build race

package worker

// limitData is off because the race detector takes memory of its own, many
// times what the program does, and makes system calls of its own.
const limitData = false
