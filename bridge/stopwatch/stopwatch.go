// Package stopwatch has timeouts of contexts that can be paused, as while a person is asked,
// and pauses that end with their context.
package stopwatch

import (
	"context"
	"sync"
	"time"
)

// A watch ends a context when its time is up, and can be paused.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	running time.Time // since when the timer has been running
	held    int
}

type key struct{}

// WithTimeout is context.WithTimeoutCause with a timeout that [Hold] pauses.
func WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{left: d, running: time.Now()}
	w.timer = time.AfterFunc(d, func() { cancel(cause) })
	return context.WithValue(ctx, key{}, w), func() { w.timer.Stop(); cancel(nil) }
}

// Hold pauses the timeout of a context, if it has one, until resume is called. Several may
// hold it at once.
func Hold(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(key{}).(*watch)
	if !ok {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held++; w.held == 1 && w.timer.Stop() {
		w.left -= time.Since(w.running)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held--; w.held == 0 { // at once, if the time was up when it was held
			w.running = time.Now()
			w.timer.Reset(w.left)
		}
	}
}

// A Limit ends an operation that takes too long.
type Limit struct {
	mu     sync.Mutex
	timer  *time.Timer // nil: stopped
	longer bool        // Extend was called in time
}

// StartLimit starts a limit: end is called when the time is up.
func StartLimit(d time.Duration, end func()) *Limit {
	return &Limit{timer: time.AfterFunc(d, end)}
}

// Extend sets it to d from now, unless it is too late.
func (l *Limit) Extend(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.timer.Stop() {
		l.longer = true
		l.timer.Reset(d)
	}
}

// Stop ends it and reports whether it was in time, and whether it was extended before.
func (l *Limit) Stop() (inTime, extended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inTime = l.timer.Stop()
	l.timer = nil
	return inTime, l.longer
}

// Pause waits, and reports whether ctx has not ended.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
