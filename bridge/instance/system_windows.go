package instance

import (
	"io/fs"
	"net"
	"syscall"
)

const supported = false

func owner(fs.FileInfo) int           { return -1 }
func peer(*net.UnixConn) (int, error) { return -1, ErrUnsupported }

// detached makes a child that has no console.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{HideWindow: true} }
