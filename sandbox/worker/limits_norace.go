//go:build !race

package worker

// limitData says that the system bounds the process's data and its system
// calls too.
const limitData = true
