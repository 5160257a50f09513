//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// nobody is the user who runs the server if the test runs as root, whom initdb refuses.
func nobody() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func unprivileged(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: nobody()}
}

func own(path string) error {
	if c := nobody(); c != nil {
		return os.Chown(path, int(c.Uid), int(c.Gid))
	}
	return nil
}

func kill(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
