//go:build unix

package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// open opens a file for reading, and never waits for a pipe that stands in its place.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// private says what is wrong with a file that is not for its owner alone, or whose owner
// is somebody else.
func private(path string, info fs.FileInfo) *Error {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return &Error{fmt.Sprintf("the file %s belongs to another user (uid %d), who could change it", path, owner.Uid),
			fmt.Sprintf("make it your own (uid %d)", os.Geteuid())}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return &Error{fmt.Sprintf("others may use the file %s: its mode is %04o", path, mode), "chmod 600 " + quoted(path)}
	}
	return nil
}

// alone lets a command end together with all that it starts.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
