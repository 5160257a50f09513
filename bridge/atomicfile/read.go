package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrIrregular says that there is something else than a file: a folder, a pipe, a device,
	// or a link where none is followed.
	ErrIrregular = errors.New("not a regular file")
	// ErrTooLong says that a file has more bytes than its reader takes.
	ErrTooLong = errors.New("too long")
)

// Read returns the content of a regular file of at most so many bytes; links are followed.
// The error wraps [fs.ErrNotExist] if there is none, [ErrIrregular] or [ErrTooLong].
func Read(path string, most int64) ([]byte, error) {
	return read(path, most, os.Stat, os.Open)
}

// ReadUnlinked is Read of a file that only we write: a link in its place is [ErrIrregular].
func ReadUnlinked(path string, most int64) ([]byte, error) {
	return read(path, most, os.Lstat, os.Open)
}

// ReadIn is Read of a file below a folder, out of which no link leads.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	return read(name, most, root.Stat, root.Open)
}

func read(path string, most int64, stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, error) {
	info, err := stat(path) // before it is opened: a pipe would wait for ever
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %w", path, ErrIrregular)
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is %w: more than %d bytes", path, ErrTooLong, most)
	}
	return data, nil
}
