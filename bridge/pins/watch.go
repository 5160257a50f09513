package pins

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/watch"
)

const (
	quiet = 50 * time.Millisecond // without changes, before the folder is read
	poll  = 2 * time.Second       // between reads of folders whose changes the system does not report
)

// A stamp tells one version of a file from another.
type stamp struct {
	name string
	size int64
	at   time.Time
}

// stamps returns those of the files of pins in a folder, by name; none if it cannot
// be read.
func stamps(dir string) []stamp {
	var all []stamp
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".json") {
			all = append(all, stamp{e.Name(), info.Size(), info.ModTime()})
		}
	}
	return all
}

// follow calls changed after each change of the files in a folder and of the lock file,
// from the caller's own goroutine, until ctx ends. Either may be empty.
func follow(ctx context.Context, dir, lock string, changed func()) {
	var folders []string
	if dir != "" {
		_ = os.MkdirAll(dir, 0o700) // if that fails, polling has to do
		folders = append(folders, dir)
	}
	if lock != "" {
		folders = append(folders, filepath.Dir(lock))
	}
	now := func() []stamp {
		all := stamps(dir)
		if info, err := os.Stat(lock); err == nil {
			all = append(all, stamp{lock, info.Size(), info.ModTime()})
		}
		return all
	}
	last := now()
	watch.Folders(ctx, func() []string { return folders }, func(bool) {
		if is := now(); !slices.Equal(is, last) {
			last = is
			changed()
		}
	}, watch.Options{Quiet: quiet, Poll: poll})
}
