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
	var cred *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
