package policycmd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/include"
	"codemode-bridge/bridge/watchfile"
)

// File reads the configuration at a path, with its overlay if that is not empty, and what it includes.
func (l *Loader) File(ctx context.Context, path, overlay string) (*config.Config, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading config: %w", err)
	}
	return l.Text(ctx, path, text, overlay)
}

// Text is File with a text in the place of what the file says.
func (l *Loader) Text(ctx context.Context, path string, text []byte, overlay string) (*config.Config, error) {
	t := config.Texts{Name: path, File: string(text)}
	if overlay != "" {
		over, err := read(overlay)
		if err != nil {
			return nil, fmt.Errorf("reading the overlay: %w", err)
		}
		t.OverlayName, t.Overlay = overlay, string(over)
	}
	return l.Load(ctx, t)
}

// read reads a file, or a pipe that a shell made, up to one byte more than a configuration may have.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// A Watch follows a configuration with everything that it is made of.
type Watch struct {
	// Load reads it again; now means that documents are fetched, however fresh their copies are.
	Load func(now bool) (*config.Config, []string, error)
	// Changed is called with each new one, and the variables that were looked up in reading it; Wrong with what
	// keeps one from being read. Never two calls at the same time.
	Changed func(cfg *config.Config, looked []string)
	Wrong   func(error)
}

// Run follows the configuration that was loaded first until ctx ends.
func (w Watch) Run(ctx context.Context, first *config.Config) {
	var mu sync.Mutex
	last := first
	moved := make(chan struct{}, 1)
	again := func(now bool) {
		mu.Lock()
		defer mu.Unlock()
		cfg, looked, err := w.Load(now)
		var loosens *LoosensError
		if errors.As(err, &loosens) && loosens.Held != nil && loosens.Held.Digest == last.Digest && loosens.Held.OverlayDigest() == last.OverlayDigest() {
			// A document became stricter than the file, which did not change.
			if loosens.Held.Texts() != last.Texts() {
				last = loosens.Held
				w.Changed(last, looked)
			}
			w.Wrong(err)
			return
		}
		if err != nil {
			w.Wrong(err)
			return
		}
		if now && cfg.Texts() == last.Texts() {
			return
		}
		files := !slices.Equal(names(cfg), names(last))
		last = cfg
		w.Changed(cfg, looked)
		if files {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	}
	lost := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		w.Wrong(err)
	}
	var all sync.WaitGroup
	watch := func(ctx context.Context, path string, loaded config.Digest) {
		all.Go(func() {
			watchfile.Watch(ctx, path, func([]byte) { again(false) }, watchfile.Options{Loaded: loaded, Lost: lost})
		})
	}
	if first.Overlay != "" {
		watch(ctx, first.Overlay, first.OverlayDigest())
	}
	watch(ctx, first.File, first.Digest)
	for ctx.Err() == nil {
		mu.Lock()
		docs := last.Included().Documents
		mu.Unlock()
		inner, stop := context.WithCancel(ctx)
		var timer <-chan time.Time
		for _, doc := range docs {
			if filepath.IsAbs(doc.Ref) {
				watch(inner, doc.Ref, sha256.Sum256([]byte(doc.Text)))
			}
			if doc.Key != "" && timer == nil {
				timer = time.After(include.Interval + rand.N(include.Interval/5))
			}
		}
		select {
		case <-ctx.Done():
		case <-moved:
		case <-timer:
			again(true)
		}
		stop()
	}
	all.Wait()
}

// names are what a configuration includes.
func names(cfg *config.Config) (all []string) {
	for _, doc := range cfg.Included().Documents {
		all = append(all, doc.Ref)
	}
	return all
}
