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
