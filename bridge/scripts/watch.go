package scripts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/watch"
)

// WatchOptions say how Watch works. The zero value is useful.
type WatchOptions struct {
	// Max bounds a file, as in Read.
	Max int64
	// Check, if not nil, looks further into a script that has no problem so far;
	// it is called once for each content. It may take long, but must end with the
	// context.
	Check func(context.Context, Script) *Problem
	// Lost, if not nil, is called when the folder can't be read, once until it
	// can be again. The last scripts that were told of stand.
	Lost func(error)
	// Quiet is how long the folder must be still before it is read; 100 ms if
	// zero. Editors take several steps to save.
	Quiet time.Duration
	// Poll is how often the folder is looked at even if no change was reported; 2 s
	// if zero. Network folders, and some containers, report none.
	Poll time.Duration
}

// Watch calls changed with the folder's scripts: at once, and then whenever they
// have changed, until the context ends. New content in which Check finds a problem
// is told of twice: unchecked, so that nothing waits for the check, and again with
// the Problem. Watch returns after the last call has returned. All calls come from
// the caller's own goroutine, one at a time.
//
// A folder that comes, goes or is replaced is followed.
func Watch(ctx context.Context, dir string, changed func([]Script), o WatchOptions) {
	w := &watcher{dir: dir, o: o, changed: changed, checked: map[string]*Problem{}}
	watch.Folders(ctx, w.where, func(heard bool) {
		if heard || w.moved() {
			w.read(ctx)
		}
	}, watch.Options{Quiet: o.Quiet, Poll: o.Poll})
}

// A watcher is what Watch knows of a folder. It belongs to one goroutine.
type watcher struct {
	dir     string
	o       WatchOptions
	changed func([]Script)

	stamps  []stamp // of the last read
	told    []Script
	began   bool
	lost    bool
	checked map[string]*Problem // by digest
}

// where returns the folder or, if there is none, the one above it.
func (w *watcher) where() []string {
	if _, err := os.Stat(w.dir); err != nil {
		return []string{filepath.Dir(w.dir)}
	}
	return []string{w.dir}
}

// look lists the folder; a missing one is empty.
func (w *watcher) look() ([]stamp, error) {
	root, err := os.OpenRoot(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return list(root)
}

// moved reports whether the files look different from when they were last read.
func (w *watcher) moved() bool {
	now, err := w.look()
	return (err != nil) != w.lost || err == nil && !slices.Equal(now, w.stamps)
}

// read reads the folder, tells of its scripts, and checks those that are new.
func (w *watcher) read(ctx context.Context) {
	// Listed before it is read: what changes in between is seen as moved.
	stamps, err := w.look()
	var all []Script
	if err == nil {
		all, err = Read(w.dir, w.o.Max)
	}
	if err != nil {
		if !w.lost && w.o.Lost != nil {
			w.o.Lost(err)
		}
		w.lost = true
		return
	}
	w.stamps, w.lost = stamps, false
	w.tell(all)
	if w.o.Check == nil {
		return
	}
	for _, s := range all {
		if _, known := w.checked[s.Digest]; s.Problem != nil || known {
			continue
		}
		p := w.o.Check(ctx, s)
		if ctx.Err() != nil {
			return
		}
		w.checked[s.Digest] = p
	}
	w.tell(all)
}

// tell calls changed if the scripts differ from those that were last told of.
func (w *watcher) tell(all []Script) {
	now := slices.Clone(all)
	keep := map[string]*Problem{}
	for i := range now {
		if p, known := w.checked[now[i].Digest]; known {
			keep[now[i].Digest] = p
			if now[i].Problem == nil {
				now[i].Problem = p
			}
		}
	}
	w.checked = keep // without the contents that are gone
	if w.began && slices.EqualFunc(now, w.told, same) {
		return
	}
	w.began, w.told = true, now
	w.changed(now)
}

// same reports whether two scripts are the same file with the same content and
// problem.
func same(a, b Script) bool {
	if a.File != b.File || a.Digest != b.Digest || (a.Problem == nil) != (b.Problem == nil) {
		return false
	}
	return a.Problem == nil || *a.Problem == *b.Problem
}
