// Package watchfile tells of each new content of a file.
package watchfile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/watch"
)

// Options say how Watch works. The zero value is useful.
type Options struct {
	// Loaded is the digest of the content that the caller has already
	// ([sha256.Sum256]). The caller is told as soon as the file differs from it;
	// with the zero one, at once.
	Loaded [sha256.Size]byte
	// Lost, if not nil, is called when the file can't be read any more, once
	// until it can be read again. The last content that was told of stands.
	Lost func(error)
	// Quiet is how long the folder must be still before the file is read;
	// 100 ms if zero. Editors take several steps to save.
	Quiet time.Duration
	// Poll is how often the file is read even if no change was reported; 2 s if
	// zero. Network folders, and some containers, report none.
	Poll time.Duration

	// deaf is for tests: hear nothing, only poll.
	deaf bool
}

// Watch calls changed with the content of the file at path whenever it differs
// from the last, until the context ends. It returns after the last call has
// returned, and starts no goroutine that outlives it. All calls come from the
// caller's own goroutine, one at a time.
//
// The content decides, not the clock of the file: touching or rewriting it
// with the same bytes is no change. A file that is missing, not readable or a
// folder has no content; see [Options.Lost]. The content may be half a
// file: the whole file is then the next change.
//
// What is watched is not the file but its folder, and every folder that holds a
// symbolic link on the way to it: a watch on the file itself ends at the first
// rename over it, and never sees a link being redirected (as Kubernetes does with
// "..data").
func Watch(ctx context.Context, path string, changed func(data []byte), o Options) {
	w := &watcher{path: path, changed: changed, options: o, last: o.Loaded}
	where := func() []string { return slices.Collect(maps.Keys(folders(path))) }
	watch.Folders(ctx, where, func(bool) { w.look() }, watch.Options{Quiet: o.Quiet, Poll: o.Poll, Deaf: o.deaf})
}

// A watcher is what Watch knows of a file. It belongs to one goroutine.
type watcher struct {
	path    string
	changed func([]byte)
	options Options
	last    [sha256.Size]byte
	lost    bool
}

// look reads the file and calls changed if its content is new.
func (w *watcher) look() {
	data, err := readRegular(w.path)
	if err != nil {
		if !w.lost && w.options.Lost != nil {
			w.options.Lost(fmt.Errorf("reading config: %w", err))
		}
		w.lost = true
		return
	}
	w.lost = false
	if digest := sha256.Sum256(data); digest != w.last {
		w.last = digest
		w.changed(data)
	}
}

// readRegular reads a file, but never waits for a pipe that somebody put in
// its place.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// maxFile bounds what is read of a file: what is larger is told of with one byte more.
const maxFile = 1 << 20

// maxLinks is how many links a path may go through.
const maxLinks = 40

// folders returns the folder of the file at path, and of every link on the
// way to it. For a folder that is missing it is the nearest one above.
func folders(path string) map[string]bool {
	found := map[string]bool{}
	links := maxLinks
	var visit func(path string) string // returns the path without links
	visit = func(path string) string {
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		parent = visit(parent)
		path = filepath.Join(parent, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil || links == 0 {
			return path
		}
		links--
		found[parent] = true
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		return visit(target)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return found
	}
	folder := filepath.Dir(visit(absolute))
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() || folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	found[folder] = true
	return found
}
