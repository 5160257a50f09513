//go:build !race

package worker

// limitData says that the system bounds the process's data too.
const limitData = true
