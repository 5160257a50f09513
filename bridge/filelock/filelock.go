// Package filelock locks files against other processes. The system drops a
// lock when its process ends, however it does.
package filelock

import "errors"

// ErrHeld is a lock that another process, or another open file, has.
var ErrHeld = errors.New("the file is locked")
