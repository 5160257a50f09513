package instance

import "golang.org/x/sys/unix"

// pipeRoom is how much a pipe takes without blocking once poll says that it takes
// something: PIPE_BUF.
const pipeRoom = 4096

// closeOnExec keeps what is received from children from the beginning.
const closeOnExec = unix.MSG_CMSG_CLOEXEC
