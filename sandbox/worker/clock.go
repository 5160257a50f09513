package worker

import (
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

const (
	// stopGrace is how long a script may continue after it was interrupted. The engine
	// stops between two instructions; looping native code does not, and is ended with the
	// process.
	stopGrace = 250 * time.Millisecond
	// lookEvery is how often the clock looks at a script that runs on.
	lookEvery = 100 * time.Millisecond
)

// A clock measures how long a script has run, waiting not counted, and acts
// at its limits: first stop, and if the script has not paused within grace,
// end. Both are told which limit it was, from a goroutine of the timer's.
//
// There are two limits. CPU time limits what the script does: on a busy machine, time
// without a processor does not count. Wall time, wire.WallFactor times as much, limits
// how long others wait for it. The CPU time is that of the process, which also collects
// garbage on other threads, so it never counts as more than the wall time: a script
// that fills memory does not pay for two processors.
//
// A worker has one clock for all its runs. Its timer is not reset each time the script
// pauses: it goes off when it is due, checks, and is set again.
type clock struct {
	busy  func() // called when a script runs on; may be called again
	end   func(limit string)
	grace time.Duration // stopGrace
	// cpu returns the CPU time that the process has used. Nil where the process
	// is not the script's alone: then wall time is all there is.
	cpu func() time.Duration

	mu      sync.Mutex
	limit   time.Duration // of CPU time
	stop    func(limit string)
	spent   time.Duration // wall time up to the last pause
	since   time.Time     // of the last resume; zero while paused
	cpuAt   time.Duration // what cpu returned at the beginning of the run
	timer   *time.Timer
	set     bool   // the timer will go off
	stopped string // the limit for which stop was called; empty before
	// What was used when stop was called, or the script ran again after that.
	stopCPU, stopWall time.Duration
}

// started is what processorTime counts from where the system does not report the
// processor time: there all time counts.
var started = time.Now()

func newClock(busy func(), end func(limit string)) *clock {
	return &clock{busy: busy, end: end, grace: stopGrace}
}

// begin sets the clock, which must be paused, to the start of a run.
func (c *clock) begin(limit time.Duration, stop func(limit string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.stop, c.spent, c.stopped = limit, stop, 0, ""
	if c.cpu != nil {
		c.cpuAt = c.cpu()
	}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	if c.stopped != "" {
		c.stopCPU, c.stopWall = c.measure(c.since)
	}
	left := c.limit - c.spent
	if left < lookEvery { // of wall time; the processor is asked only now
		_, left = c.left(c.since)
	}
	// A timer that is set goes off within lookEvery: it is set anew only if the
	// limit is reached before that.
	if !c.set || left < lookEvery {
		c.arm(left)
	}
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent += time.Since(c.since)
	c.since = time.Time{}
}

// used returns the CPU time spent so far; the clock must be paused.
func (c *clock) used() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	cpu, _ := c.measure(time.Time{})
	return cpu
}

// over returns the limit that the run has exceeded, whether or not it was told so in
// time; empty if none. The clock must be paused.
func (c *clock) over() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped != "" {
		return c.stopped
	}
	if limit, left := c.left(time.Time{}); left <= 0 {
		return limit
	}
	return ""
}

// measure returns what the run has used up to a moment.
func (c *clock) measure(now time.Time) (cpu, wall time.Duration) {
	wall = c.spent
	if !c.since.IsZero() {
		wall += now.Sub(c.since)
	}
	if c.cpu == nil {
		return wall, wall
	}
	return min(wall, c.cpu()-c.cpuAt), wall
}

// left returns which limit, or grace after it, comes first, and when.
func (c *clock) left(now time.Time) (limit string, left time.Duration) {
	cpu, wall := c.measure(now)
	most := c.limit
	if c.stopped != "" {
		cpu, wall, most = cpu-c.stopCPU, wall-c.stopWall, c.grace
	}
	limit, left = wire.LimitCPU, most-cpu
	if wall := wire.WallFactor*most - wall; wall < left {
		limit, left = wire.LimitWall, wall
	}
	return limit, left
}

// close ends the clock, which must be paused.
func (c *clock) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// arm sets the timer to go off after the time that is left, or for a look before
// that.
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
	if c.since.IsZero() {
		return nil // resume sets the timer
	}
	limit, left := c.left(now)
	switch {
	case left <= 0 && c.stopped != "":
		why := c.stopped
		return func() { c.end(why) }
	case left <= 0:
		c.stopped = limit
		c.stopCPU, c.stopWall = c.measure(now)
		stop := c.stop
		left, act = c.grace, func() { stop(limit) }
	case now.Sub(c.since) >= lookEvery:
		act = c.busy
	}
	c.arm(left)
	return act
}
