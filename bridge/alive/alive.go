// Package alive tells which of the processes that share a folder are still running.
//
// Each holds a lock on a file of its own there. The system releases the lock when
// the process ends, however it ends. A process number would not do: after a restart
// of the machine another process may have it.
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

// A Member is this process in a folder, until it leaves.
type Member struct{ file *os.File }

// Join makes the process known under a name that no other has, and removes the files
// of processes that have ended. It makes the folder if need be.
func Join(dir, name string) (*Member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	sweep(dir)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	if err := filelock.Try(f); err != nil { // a sweep by another process leaves a file this young alone
		f.Close()
		return nil, fmt.Errorf("making it known that this process runs: %w", err)
	}
	return &Member{f}, nil
}

// Leave removes the process's file: it counts as ended from now on.
func (m *Member) Leave() error {
	return errors.Join(os.Remove(m.file.Name()), m.file.Close())
}

// Gone reports whether the process with that name has ended or never existed. If
// that is unknown, it reports false.
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

// Members returns the names of the processes that have joined and still run.
func Members(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nobody ever joined
	}
	for _, e := range entries {
		if !Gone(dir, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// sweep removes the files of processes that have ended. A process that is just
// joining has no lock yet, so young files stay.
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

// young is how old a file may be and not yet be locked.
const young = time.Minute

func old(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > young
}
