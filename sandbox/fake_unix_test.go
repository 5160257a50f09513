//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

func init() {
	signal := func(s syscall.Signal) func(*fake) {
		return func(*fake) { syscall.Kill(os.Getpid(), s); hang() }
	}
	acts["segv"] = signal(syscall.SIGSEGV)
	acts["stop"] = signal(syscall.SIGSTOP)
}
