//go:build !race

package racing

// On reports whether the race detector is on.
const On = false
