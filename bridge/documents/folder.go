package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/watch"
)

const (
	lockName = "lock"
	lockWait = 10 * time.Second      // for the changes of other processes
	lockLook = 20 * time.Millisecond // between looks whether the caller still waits
	quiet    = 50 * time.Millisecond // without changes, before a folder is read
	poll     = 2 * time.Second       // between reads of folders whose changes the system does not report
)

// A folder keeps each document in a file of its own, for its owner only, which is
// replaced in one step under the lock of the file "lock".
type folder struct{ dir string }

// Folder returns the documents in a folder, which the first change makes.
func Folder(dir string) Store { return folder{dir} }

func (f folder) Read(ctx context.Context, name string) ([]byte, error) {
	if err := errors.Join(ctx.Err(), CheckName(name)); err != nil {
		return nil, err
	}
	return f.read(name)
}

func (f folder) read(name string) ([]byte, error) {
	return atomicfile.ReadUnlinked(filepath.Join(f.dir, name), Most)
}

func (f folder) Names(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (f folder) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := errors.Join(ctx.Err(), CheckName(name)); err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		old = nil
	} else if err != nil {
		return err
	}
	next, err := changed(name, slices.Clone(old), change)
	switch path := filepath.Join(f.dir, name); {
	case err != nil:
		return err
	case next == nil && old == nil, next != nil && old != nil && bytes.Equal(next, old):
		return nil
	case next == nil:
		return os.Remove(path)
	default:
		return atomicfile.Write(path, next)
	}
}

// lock waits for the lock of all processes.
func (f folder) lock(ctx context.Context) (unlock func(), err error) {
	for until := time.Now().Add(lockWait); ; {
		unlock, err := filelock.Wait(filepath.Join(f.dir, lockName), lockLook)
		switch {
		case err == nil:
			return unlock, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case !errors.Is(err, filelock.ErrHeld) || time.Now().After(until):
			return nil, err
		}
	}
}

// A stamp tells one version of a file from another.
type stamp struct {
	name string
	size int64
	at   time.Time
}

// stamps returns those of all documents, by name; none if the folder cannot be read.
func (f folder) stamps() (all []stamp) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && CheckName(e.Name()) == nil {
			all = append(all, stamp{e.Name(), info.Size(), info.ModTime()})
		}
	}
	return all
}

func (f folder) Watch(ctx context.Context, changed func()) {
	if ctx.Err() != nil {
		return
	}
	_ = os.MkdirAll(f.dir, 0o700) // if that fails, polling has to do
	last := f.stamps()
	watch.Folders(ctx, func() []string { return []string{f.dir} }, func(bool) {
		if is := f.stamps(); !slices.Equal(is, last) {
			last = is
			changed()
		}
	}, watch.Options{Quiet: quiet, Poll: poll})
}
