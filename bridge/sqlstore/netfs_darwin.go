package sqlstore

import "golang.org/x/sys/unix"

// networkFS names the network file system that a folder is on; empty when it
// is on a local one.
func networkFS(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
