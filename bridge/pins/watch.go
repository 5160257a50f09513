package pins

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/watch"
)

const (
	quiet = 50 * time.Millisecond // that the folder must be still before it is looked at
	poll  = 2 * time.Second       // for folders whose changes nobody reports
)

// A stamp is how one file of the folder looks.
type stamp struct {
	name string
	size int64
	at   time.Time
}

// stamps are the files of pins in a folder, by name; none if it can't be read.
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

// follow calls changed after each change of the files in a folder, from the
// caller's own goroutine, until ctx ends.
func follow(ctx context.Context, dir string, changed func()) {
	_ = os.MkdirAll(dir, 0o700) // without it polling has to do
	last := stamps(dir)
	watch.Folders(ctx, func() []string { return []string{dir} }, func(bool) {
		if now := stamps(dir); !slices.Equal(now, last) {
			last = now
			changed()
		}
	}, watch.Options{Quiet: quiet, Poll: poll})
}
