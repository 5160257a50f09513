package worker

import (
	"sync"
	"time"
)

const (
	// stopGrace is how long a script may go on after it was interrupted. The
	// engine stops between two instructions; native code that loops does not,
	// and is ended with the process.
	stopGrace = 250 * time.Millisecond
	// lookEvery is how often the clock looks at a script that runs on.
	lookEvery = 100 * time.Millisecond
)

// A clock measures how long a script has run, waiting not counted, and acts
// at the limit: first stop, and if the script has not paused within grace,
// end. Both are called from a goroutine of the timer's.
//
// A worker has one for all its runs. Its timer is not set anew each time the
// script pauses: it comes when it was set for, looks, and is set again.
type clock struct {
	busy  func() // called when a script runs on; may be called again
	end   func()
	grace time.Duration // stopGrace

	mu    sync.Mutex
	limit time.Duration
	stop  func()
	spent time.Duration // up to the last pause
	since time.Time     // of the last resume; zero while paused
	timer *time.Timer
	set   bool // the timer will come
	// stopped is when stop was called, or the script ran again after that;
	// zero before.
	stopped time.Time
}

func newClock(busy, end func()) *clock { return &clock{busy: busy, end: end, grace: stopGrace} }

// begin sets the clock, which must be paused, to the start of a run.
func (c *clock) begin(limit time.Duration, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.stop, c.spent, c.stopped = limit, stop, 0, time.Time{}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	if !c.stopped.IsZero() {
		c.stopped = c.since
	}
	// A timer that is set comes within lookEvery; only less than that is left
	// to the limit is a reason to have it earlier.
	if left := c.limit - c.spent; !c.set || left < lookEvery {
		c.arm(left)
	}
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent += time.Since(c.since)
	c.since = time.Time{}
}

// used returns the time spent so far; the clock must be paused.
func (c *clock) used() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent
}

// close ends the clock, which must be paused.
func (c *clock) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// arm sets the timer, for the time that is left or a look before that.
func (c *clock) arm(left time.Duration) {
	after := max(0, min(left, lookEvery))
	c.set = true
	if c.timer == nil {
		c.timer = time.AfterFunc(after, c.look)
	} else {
		c.timer.Reset(after)
	}
}

// look does what is due.
func (c *clock) look() {
	if act := c.due(time.Now()); act != nil {
		act()
	}
}

// due returns what to do at a moment, nil for nothing.
func (c *clock) due(now time.Time) (act func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = false
	left := c.limit - c.spent - now.Sub(c.since)
	switch {
	case c.since.IsZero():
		return nil // resume sets the timer
	case !c.stopped.IsZero():
		if left = c.grace - now.Sub(c.stopped); left <= 0 {
			return c.end
		}
	case left <= 0:
		c.stopped, left, act = now, c.grace, c.stop
	case now.Sub(c.since) >= lookEvery:
		act = c.busy
	}
	c.arm(left)
	return act
}
