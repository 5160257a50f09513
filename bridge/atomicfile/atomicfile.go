// Package atomicfile replaces a file in one step: whoever reads it finds all of the
// old content or all of the new, even after a crash.
//
// The new content is written beside the file, under a name that begins with a dot
// and ends in .tmp, synced to the disk, and renamed over the file. Two writers at
// the same time do not mix: the last to rename wins. Locking is left to callers.
//
// What was written so is read by [Read], which takes a regular file of a bounded length
// and waits for nobody.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Options say how a file is replaced. The zero value is good.
type Options struct {
	Mode fs.FileMode // of the new file; 0: 0600, for its owner alone
	// Before, if not nil, is called when the new content is on the disk and the old
	// one is still in its place. Its error leaves the file as it is, and is returned.
	Before func() error
}

// Write replaces the file at path, or makes it, for its owner alone. Its folder must
// be there.
func Write(path string, data []byte) error { return Replace(path, data, Options{}) }

// Replace is Write with options.
func Replace(path string, data []byte, o Options) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if o.Mode != 0 {
		err = errors.Join(err, f.Chmod(o.Mode))
	}
	// Without Sync a crash may leave the new name with no content.
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil && o.Before != nil {
		err = o.Before()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if undone := os.Remove(f.Name()); undone != nil {
			return errors.Join(err, undone)
		}
	}
	return err
}
