package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"codemode-bridge/bridge/atomicfile"
)

// ErrChanged is the error of writing a file that somebody else has changed
// since it was read.
var ErrChanged = errors.New("the file was changed meanwhile")

// maxFile bounds a client's file. Some keep their history in it.
const maxFile = 64 << 20

// A File is a file as it was read once.
type File struct {
	Text    []byte
	Existed bool
	path    string // with links resolved, so that a link stays a link
	mode    fs.FileMode
	folders fs.FileMode // of folders that Write makes
}

// ReadFile reads a file; one that does not exist is empty. Anything but a
// plain file is an error.
func ReadFile(path string) (*File, error) {
	f := &File{path: path, mode: 0o600, folders: 0o700}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("reading %s: it is a link to a file that does not exist", path)
		}
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	f.path, f.mode, f.Existed = real, info.Mode().Perm(), true
	if f.Text, err = read(real); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	text, err := atomicfile.Read(path, maxFile)
	switch {
	case errors.Is(err, atomicfile.ErrIrregular):
		return nil, errors.New("it is not a plain file")
	case errors.Is(err, atomicfile.ErrTooLong):
		return nil, fmt.Errorf("it is larger than %d MB", maxFile>>20)
	}
	return text, err
}

// unchanged returns ErrChanged if the file is not as it was read.
func (f *File) unchanged() error {
	now, err := read(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.Existed:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || !f.Existed || !bytes.Equal(now, f.Text):
		return ErrChanged
	}
	return nil
}

// Write replaces the file's text in one step, if the file is still as it was
// read; otherwise the error is ErrChanged. Its folder is made if need be.
func (f *File) Write(text []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", f.path, err)
		}
	}()
	made := f.missing()
	if err := os.MkdirAll(filepath.Dir(f.path), f.folders); err != nil {
		return err
	}
	for _, folder := range made { // whatever the umask is
		if err := os.Chmod(folder, f.folders); err != nil {
			return err
		}
	}
	if err := atomicfile.Replace(f.path, text, atomicfile.Options{Mode: f.mode, Before: f.unchanged}); err != nil {
		return err
	}
	f.Text, f.Existed = text, true
	return nil
}

// everybodys makes a new file one that every user of the machine can read.
func (f *File) everybodys() {
	f.folders = 0o755
	if !f.Existed {
		f.mode = 0o644
	}
}

// missing returns the folders that Write will make, the deepest first.
func (f *File) missing() (folders []string) {
	for folder := filepath.Dir(f.path); ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, folder)
	}
}

// Private makes Write leave a file that only this user can read.
func (f *File) Private() { f.mode = 0o600 }

// Remove removes the file, if it is still as it was read.
func (f *File) Remove() error {
	err := f.unchanged()
	if err == nil && f.Existed {
		err = os.Remove(f.path)
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", f.path, err)
	}
	f.Text, f.Existed = nil, false
	return nil
}

// Backup writes what was read into a new file beside it, which nobody else
// may read, and returns its name.
func (f *File) Backup() (string, error) {
	const most = 1000
	for n := 1; n < most; n++ {
		name := f.path + ".before-codemode"
		if n > 1 {
			name += fmt.Sprintf(".%d", n)
		}
		w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode&0o700|0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_, err = w.Write(f.Text)
			err = errors.Join(err, w.Sync(), w.Close())
		}
		if err != nil {
			return "", fmt.Errorf("keeping a copy of %s: %w", f.path, err)
		}
		return name, nil
	}
	return "", fmt.Errorf("keeping a copy of %s: there are %d already", f.path, most-1)
}
