package instance

import (
	"context"
	"errors"
	"os"
	"time"

	"codemode-bridge/bridge/filelock"
)

// A lock is a locked file, which is removed with the lock.
type lock struct{ file *os.File }

func tryLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Try(f); err != nil {
		f.Close()
		return nil, err
	}
	// The one before may have removed the file between the two steps: then this
	// lock is of a file that nobody else will find.
	mine, err := f.Stat()
	there, gone := os.Stat(path)
	if err != nil || gone != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, errors.Join(filelock.ErrHeld, err)
	}
	return &lock{f}, nil
}

func waitLock(ctx context.Context, path string) (*lock, error) {
	for {
		l, err := tryLock(path)
		if !errors.Is(err, filelock.ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(between):
		}
	}
}

func (l *lock) release() {
	os.Remove(l.file.Name())
	l.file.Close()
}
