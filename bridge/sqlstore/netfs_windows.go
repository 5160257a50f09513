package sqlstore

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// networkFS says "a network drive" for a folder on one; empty for others.
func networkFS(dir string) string {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(absolute) + `\`)
	if err != nil || windows.GetDriveType(root) != windows.DRIVE_REMOTE {
		return ""
	}
	return "a network drive"
}
