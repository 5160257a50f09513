package pins

import (
	"errors"
	"fmt"
	"os"
	"time"

	"codemode-bridge/bridge/filelock"
)

// lock takes the lock of all processes, which is held for the time of one
// write. It waits no longer than most: a process that hangs must not stop
// others for ever.
func lock(path string, most time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(most)
	for {
		err := filelock.Try(f)
		if err == nil {
			return func() { f.Close() }, nil // which lets go of it
		}
		if !errors.Is(err, filelock.ErrHeld) || time.Now().After(until) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
