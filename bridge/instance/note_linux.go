package instance

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// noteFile makes a file without a name. It is in memory.
func (r *Rendezvous) noteFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("codemode-bridge-requests", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file for the open requests: %w", err)
	}
	return os.NewFile(uintptr(fd), "requests"), nil
}
