//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Try locks a file until it is closed, or returns ErrHeld at once.
func Try(f *os.File) error { return lock(f, unix.LOCK_EX) }

// TryShared is Try for a shared lock, which any number may have as long as nobody has
// one of Try's.
func TryShared(f *os.File) error { return lock(f, unix.LOCK_SH) }

func lock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
