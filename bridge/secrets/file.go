package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// A place is where paths start.
type place struct{ folder, home string }

// path makes a path absolute: "~" is the home folder, and a relative one starts from the
// configuration's.
func (p place) path(written string) (string, *Error) {
	path := written
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		if p.home == "" {
			return "", &Error{fmt.Sprintf(`%s starts with "~", but the home folder is not known`, written), "set HOME, or write the path"}
		}
		path = filepath.Join(p.home, rest)
	}
	if !filepath.IsAbs(path) {
		if p.folder == "" {
			return "", &Error{fmt.Sprintf("%s is a relative path, and nobody knows from where", written), "write the whole path"}
		}
		path = filepath.Join(p.folder, path)
	}
	return filepath.Clean(path), nil
}

// readFile reads a secret. Others may neither read the file nor have it in their hands.
func readFile(from place, written string) (string, *Error) {
	path, wrong := from.path(written)
	if wrong != nil {
		return "", wrong
	}
	f, err := open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &Error{fmt.Sprintf("there is no file %s", path), "write the secret into it, and nothing else, for you alone: mode 0600"}
	case err != nil:
		return "", &Error{fmt.Sprintf("the file %s cannot be read: %s", path, reason(err)), ""}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", &Error{fmt.Sprintf("the file %s cannot be read: %s", path, reason(err)), ""}
	case !info.Mode().IsRegular():
		return "", &Error{fmt.Sprintf("%s is not a file", path), ""}
	}
	if wrong := private(path, info); wrong != nil {
		return "", wrong
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+3)) // and its line break
	if err != nil {
		return "", &Error{fmt.Sprintf("the file %s cannot be read: %s", path, reason(err)), ""}
	}
	return string(data), nil
}

// reason is an error without the path, which the message has already.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}
