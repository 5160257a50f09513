package instance

import "golang.org/x/sys/unix"

// pipeRoom is how much a pipe takes without blocking once poll says that it takes
// something: PIPE_BUF.
const pipeRoom = 4096

// closeOnExec keeps what is received from children from the beginning.
const closeOnExec = unix.MSG_CMSG_CLOEXEC

// roomIn returns how much a pipe that takes something takes without blocking.
func roomIn(out int) int {
	if waiting, err := unix.IoctlGetInt(out, unix.TIOCINQ); err == nil && waiting == 0 {
		if size, err := unix.FcntlInt(uintptr(out), unix.F_GETPIPE_SZ, 0); err == nil {
			return max(size, pipeRoom)
		}
	}
	return pipeRoom
}
