// Package watch notices that files may have changed: it hears of changes in folders,
// waits until they are still, since editors take several steps to save, and looks now
// and then in any case, since network folders and some containers report no changes.
//
// What has changed, if anything, is for the caller to find out, by content or by stamp.
package watch

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options say how Folders works. The zero value is good.
type Options struct {
	// Quiet is how long the folders must be still before they are looked at; 0:
	// 100 ms. Steady changes put that off for ten times as long at most.
	Quiet time.Duration
	// Poll is how often they are looked at even if no change was reported; 0: 2 s.
	Poll time.Duration
	// Deaf hears nothing and only polls.
	Deaf bool
}

func (o Options) quiet() time.Duration {
	if o.Quiet > 0 {
		return o.Quiet
	}
	return 100 * time.Millisecond
}

func (o Options) poll() time.Duration {
	if o.Poll > 0 {
		return o.Poll
	}
	return 2 * time.Second
}

// patience bounds how long steady changes can put off looking, in multiples of
// Options.Quiet.
const patience = 10

// Folders calls look at once, and then whenever something may have changed in the
// folders that where names, until the context ends. heard is false where it only
// polls. where is asked anew each time, so folders that come, go or are replaced are
// followed. All calls come from the caller's own goroutine, one at a time; Folders
// returns after the last has returned, and starts no goroutine that outlives it.
func Folders(ctx context.Context, where func() []string, look func(heard bool), o Options) {
	w := &watcher{where: where, folders: map[string]bool{}}
	var events chan fsnotify.Event
	var faults chan error
	if !o.Deaf {
		if notify, err := fsnotify.NewWatcher(); err == nil { // else polling has to do
			defer notify.Close()
			w.notify, events, faults = notify, notify.Events, notify.Errors
		}
	}
	w.follow()
	look(true)

	poll := time.NewTicker(o.poll())
	defer poll.Stop()
	var quiet <-chan time.Time // set while a change is waited out
	var since time.Time        // when that waiting began
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
			}
		case _, ok := <-faults:
			// Some events may be lost, so look as if there had been one.
			if !ok {
				faults = nil
			}
		case <-quiet:
			quiet = nil
			w.follow()
			look(true)
			continue
		case <-poll.C:
			w.follow()
			if quiet == nil {
				look(false)
			}
			continue
		}
		if quiet == nil {
			since = time.Now()
		}
		if time.Since(since) < patience*o.quiet() {
			quiet = time.After(o.quiet())
		}
	}
}

// A watcher knows which folders are watched. It belongs to one goroutine.
type watcher struct {
	where   func() []string
	notify  *fsnotify.Watcher // nil: deaf
	folders map[string]bool
}

// follow brings the watched folders in line with where they are now.
func (w *watcher) follow() {
	if w.notify == nil {
		return
	}
	now := map[string]bool{}
	for _, folder := range w.where() {
		now[folder] = true
	}
	for folder := range w.folders {
		if !now[folder] {
			_ = w.notify.Remove(folder) // the watch may have gone with its folder
			delete(w.folders, folder)
		}
	}
	for folder := range now {
		// Adding again is cheap, and needed where a folder was replaced by
		// another of the same name. What can't be watched is polled.
		if w.notify.Add(folder) == nil {
			w.folders[folder] = true
		}
	}
}
