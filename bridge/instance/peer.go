//go:build linux || darwin

package instance

import (
	"errors"
	"net"
)

// peer returns the user at the other end.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { uid, failed = peerOf(int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return uid, nil
}
