//go:build linux || darwin

package doctor

import "golang.org/x/sys/unix"

// freeSpace is how many bytes this user can still write to a folder's disk.
func freeSpace(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
