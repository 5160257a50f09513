//go:build unix

package instance

import (
	"io/fs"
	"syscall"
)

const supported = true

// owner is the user whose file it is; -1 if that is not known.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// detached makes a child the leader of a session of its own: what ends the
// terminal or the process group of its parent does not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
