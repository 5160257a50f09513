//go:build !linux

package confine

import (
	"fmt"
	"os"
	"runtime"
)

// Main is the launcher, which only Linux has.
func Main() (code int) {
	fmt.Fprintln(os.Stderr, "codemode-worker box is not available on "+runtime.GOOS)
	return 2
}

// killing ends a process when it is closed.
type killing struct{ process *os.Process }

func (k killing) Close() error { return k.process.Kill() }
