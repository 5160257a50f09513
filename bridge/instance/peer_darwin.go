package instance

import "golang.org/x/sys/unix"

// peerOf returns the user at the other end of a socket.
func peerOf(socket int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(socket, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
