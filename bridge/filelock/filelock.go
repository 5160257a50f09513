// Package filelock locks files against other processes. The system drops a
// lock when its process ends, however it does.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrHeld means that another process, or another open file, has the lock.
var ErrHeld = errors.New("the file is locked")

// Wait makes the file at path if need be and takes its lock, which is meant to
// be held for one write. It waits no longer than most: a process that hangs must
// not stop others for ever.
func Wait(path string, most time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(most)
	for {
		err := Try(f)
		if err == nil {
			return func() { f.Close() }, nil // which releases it
		}
		if !errors.Is(err, ErrHeld) || time.Now().After(until) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
