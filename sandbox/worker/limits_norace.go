//go:build !race

package worker

// limitData says whether the process's data and its system calls are limited too.
const limitData = true
