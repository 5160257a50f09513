// Package footprint gives back the memory that only the start of a program needed.
//
// A start runs through much of the program once: it prepares packages, reads the
// configuration, opens stores. What that leaves is garbage on the heap, and pages of the
// program's own file: with each page that is touched the system maps the 16 around it, so
// that a bridge at rest has 30 MB of its program in memory, and uses a third of them.
// Pages that are needed again are mapped again, from memory, within microseconds.
package footprint

import (
	"runtime/debug"
	"time"
)

// rest is how long after its beginning a start is over.
const rest = time.Second

// AfterStart gives back what the start needed, when that is over; it does not wait for it.
func AfterStart() { time.AfterFunc(rest, giveBack) }

func giveBack() {
	debug.FreeOSMemory()
	for _, m := range unchanged() {
		m.drop()
	}
}

// A mapping is a part of the program's file that is in memory as it is in the file.
type mapping struct{ start, end uintptr }
