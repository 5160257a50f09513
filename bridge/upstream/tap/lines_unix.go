//go:build unix

package tap

import (
	"io"
	"syscall"
)

// tryWrite writes as much to a pipe as it takes without waiting, and returns
// how much that was. Errors are left to a proper write.
func tryWrite(w io.Writer, data []byte) (n int) {
	pipe, ok := w.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	// The descriptor does not block: the runtime waits for it elsewhere.
	_ = raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), data)
		return true
	})
	if err != nil {
		return 0
	}
	return n
}
