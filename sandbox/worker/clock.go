package worker

import (
	"sync"
	"time"
)

// grace is how long a script may go on after it was interrupted. The engine
// stops between two instructions; native code that loops does not, and is
// ended with the process.
const grace = 250 * time.Millisecond

// A clock measures how long a script has run, waiting not counted, and acts
// at the limit: first stop, and if the script has not paused within grace,
// end. Both are called from a goroutine of the timer's.
type clock struct {
	limit     time.Duration
	stop, end func()

	mu      sync.Mutex
	spent   time.Duration // up to the last pause
	since   time.Time     // of the last resume; zero while paused
	turn    int           // counts resumes: a timer of an older one is void
	timer   *time.Timer
	stopped bool // stop was called
}

func newClock(limit time.Duration, stop, end func()) *clock {
	return &clock{limit: limit, stop: stop, end: end}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.turn++
	turn := c.turn
	left := max(0, c.limit-c.spent)
	if c.stopped {
		left = grace
	}
	c.timer = time.AfterFunc(left, func() { c.fire(turn) })
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.spent += time.Since(c.since)
	c.since = time.Time{}
}

// used returns the time spent so far; the clock must be paused.
func (c *clock) used() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent
}

func (c *clock) fire(turn int) {
	c.mu.Lock()
	current := c.turn == turn && !c.since.IsZero()
	first := current && !c.stopped
	if first {
		c.stopped = true
		c.timer = time.AfterFunc(grace, func() { c.fire(turn) })
	}
	c.mu.Unlock()
	switch {
	case first:
		c.stop()
	case current:
		c.end()
	}
}
