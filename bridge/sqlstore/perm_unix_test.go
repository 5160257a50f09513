//go:build !windows

package sqlstore

import "os"

// permissions are who may use a file.
func permissions(info os.FileInfo) os.FileMode { return info.Mode().Perm() }
