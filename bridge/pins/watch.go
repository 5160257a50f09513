package pins

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
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

// watch calls changed after each change of the files in a folder, from the
// caller's own goroutine, until ctx ends.
func watch(ctx context.Context, dir string, changed func()) {
	var events chan fsnotify.Event
	var faults chan error
	if notify, err := fsnotify.NewWatcher(); err == nil { // else polling has to do
		defer notify.Close()
		if os.MkdirAll(dir, 0o700) == nil && notify.Add(dir) == nil {
			events, faults = notify.Events, notify.Errors
		}
	}
	last := stamps(dir)
	look := func() {
		if now := stamps(dir); !slices.Equal(now, last) {
			last = now
			changed()
		}
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			settled = time.After(quiet)
		case _, ok := <-faults: // some events may be lost
			if !ok {
				faults = nil
				continue
			}
			settled = time.After(quiet)
		case <-settled:
			settled = nil
			look()
		case <-tick.C:
			look()
		}
	}
}
