package upstream

import (
	"errors"
	"io/fs"
	"os/exec"
	"slices"
)

// plain says why a server failed in the words of this package alone, for places where
// nobody expects those of a server; empty if there are none. What the server wrote, and
// what a program printed that we asked for something, is left out.
func plain(err error) string {
	var shown *shownError
	var start *startError
	var refused *refusedError
	var wrong *wrongError
	ours := []error{errConnectTimeout, errListTimeout, errUnlisted}
	is := func(one error) bool { return errors.Is(err, one) }
	switch i := slices.IndexFunc(ours, is); {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &wrong):
		return "it cannot be started as it is configured"
	case errors.As(err, &start):
		if slices.ContainsFunc([]error{exec.ErrNotFound, fs.ErrNotExist, fs.ErrPermission}, is) {
			return start.Error()
		}
		return "its program could not be started"
	case errors.As(err, &shown) && shown.plain != "":
		return shown.plain
	case i >= 0:
		return ours[i].Error()
	}
	return ""
}
