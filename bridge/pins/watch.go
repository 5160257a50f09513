package pins

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/watch"
)

const (
	quiet = 50 * time.Millisecond // without changes, before the folder is read
	poll  = 2 * time.Second       // between reads of folders whose changes the system does not report
)

// A stamp tells one version of a file from another.
type stamp struct {
	size int64
	at   time.Time
}

// follow calls changed after each change of a lock file, from the caller's own goroutine,
// until ctx ends.
func follow(ctx context.Context, lock string, changed func()) {
	now := func() (s stamp) {
		if info, err := os.Stat(lock); err == nil {
			s = stamp{info.Size(), info.ModTime()}
		}
		return s
	}
	last := now()
	watch.Folders(ctx, func() []string { return []string{filepath.Dir(lock)} }, func(bool) {
		if is := now(); is != last {
			last = is
			changed()
		}
	}, watch.Options{Quiet: quiet, Poll: poll})
}
