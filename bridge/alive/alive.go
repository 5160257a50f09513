// Package alive tells which of the processes that share a folder still run.
//
// Each holds a lock on a file of its own there. The system drops the lock when
// the process ends, however it does, so that nobody is taken for another one
// that got the same number after a restart of the machine.
package alive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/filelock"
)

// A Member is this process, as long as it has not left.
type Member struct{ file *os.File }

// Join makes the process known under a name that no other has, and removes what
// processes have left behind that ended. It makes the folder if need be.
func Join(dir, name string) (*Member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	sweep(dir)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	if err := filelock.Try(f); err != nil { // who sweeps in this very moment leaves it alone: the name is new
		f.Close()
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	return &Member{f}, nil
}

// Leave ends what Join began.
func (m *Member) Leave() error {
	return errors.Join(os.Remove(m.file.Name()), m.file.Close())
}

// Gone reports whether the process of a name has ended, or never was. Where
// that cannot be told, it has not.
func Gone(dir, name string) bool {
	if name != filepath.Base(name) {
		return true // no process joins under such a name
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return filelock.TryShared(f) == nil // shared: many may ask at once
}

// sweep removes the files of processes that have ended. One that is just being
// made has no lock yet, so young files stay.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if old(e) && Gone(dir, e.Name()) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next sweep tries again
		}
	}
}

// young is how long a file may be there without its lock.
const young = time.Minute

func old(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > young
}
