package instance

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// peer is the user at the other end.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
