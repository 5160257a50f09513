package sandbox

import (
	"container/heap"
	"time"

	"codemode-bridge/sandbox/wire"
)

const (
	// grace is how much longer than Limits.CPU a worker may run, so that it
	// can stop the script itself and say where it was.
	grace = 500 * time.Millisecond
	// sampleEvery is how often a worker's real processor time is compared with the time
	// that it claims.
	sampleEvery = time.Second
)

// A scriptClock measures how long a script runs: in wall time while the worker is not
// idle, and in processor time where the system reports it. The clock stands still while
// the worker waits. A run has one, under its lock.
type scriptClock struct {
	limit   time.Duration // Limits.CPU and the grace
	cpu     func() (time.Duration, bool)
	cpuAt   time.Duration // processor time of the worker when the run began
	metered bool          // the system reports it; if not, only the worker enforces Limits.CPU

	running bool
	since   time.Time     // when it last began to run
	used    time.Duration // before since

	spare      time.Duration // by how much the clock was ahead of the processor time when last compared
	burnt      time.Duration // processor time used beyond what running explains
	sampled    sample
	sampledAt  time.Duration // what the clock showed when sampled was taken
	nextSample time.Time
}

// newScriptClock returns a clock that runs.
func newScriptClock(limit time.Duration, cpu func() (time.Duration, bool), now time.Time) scriptClock {
	c := scriptClock{limit: limit + grace, cpu: cpu, running: true, since: now, nextSample: now.Add(sampleEvery)}
	c.cpuAt, c.metered = cpu()
	return c
}

func (c *scriptClock) start(now time.Time) {
	if !c.running {
		c.running, c.since = true, now
	}
}

func (c *scriptClock) stop(now time.Time) {
	if c.running {
		c.used += now.Sub(c.since)
		c.running = false
	}
}

// shown returns what the clock shows.
func (c *scriptClock) shown(now time.Time) time.Duration {
	if c.running {
		return c.used + now.Sub(c.since)
	}
	return c.used
}

// charged returns what counts as CPU time: the clock's time plus what the worker used
// beyond it, but no more than the processor time that the system reports. So a script
// is not charged for waiting for a processor, nor for garbage collection on other
// processors beyond its own time.
func (c *scriptClock) charged(now time.Time) time.Duration {
	shown := c.shown(now) + c.burnt
	if cpu, ok := c.cpu(); ok && c.metered {
		return min(shown, cpu-c.cpuAt)
	}
	return shown
}

// exceeded returns the limit that the script has exceeded, empty if none. The system is
// asked for the processor time only if the limit may have been reached by the clock;
// the difference between the two is kept, so that the system is asked again no sooner
// than necessary.
func (c *scriptClock) exceeded(now time.Time) (limit string) {
	shown := c.shown(now)
	if c.metered && shown+c.burnt-c.spare >= c.limit {
		charged := c.charged(now)
		if charged >= c.limit {
			return wire.LimitCPU
		}
		c.spare = shown + c.burnt - charged
	}
	if shown >= wire.WallFactor*c.limit {
		return wire.LimitWall
	}
	return ""
}

// next returns when the clock must be checked again.
func (c *scriptClock) next(now time.Time) time.Time {
	if !c.running {
		return c.nextSample
	}
	end := wire.WallFactor * c.limit
	if c.metered {
		end = min(end, c.limit+c.spare-c.burnt)
	}
	return earlier(c.nextSample, now.Add(end-c.shown(now)))
}

// sample compares, when it is due, the worker's processor time with the clock. A worker
// that says Idle but keeps working is charged for what it really uses. A twentieth of a
// processor is free, and three while it runs, for collecting garbage and watching its
// own memory.
func (c *scriptClock) sample(now time.Time) {
	if c.nextSample.After(now) {
		return
	}
	c.nextSample = now.Add(sampleEvery)
	cpu, ok := c.cpu()
	if !ok {
		return
	}
	shown := c.shown(now)
	if last := c.sampled; !last.at.IsZero() {
		excess := (cpu - last.cpu) - now.Sub(last.at)/20 - 3*(shown-c.sampledAt)
		c.burnt += max(0, excess)
	}
	c.sampled, c.sampledAt = sample{now, cpu}, shown
}

// A waitClock measures how long a script has waited for nothing but its own timers, so
// that no script occupies a worker just by letting time pass. A run has one, under its
// lock.
type waitClock struct {
	limit   time.Duration // Limits.Waiting
	running bool
	since   time.Time     // when it last began to run
	waited  time.Duration // before since
}

func (w *waitClock) start(now time.Time) { w.running, w.since = true, now }

func (w *waitClock) stop(now time.Time) {
	if w.running {
		w.waited += now.Sub(w.since)
		w.running = false
	}
}

// end returns when the limit is reached if nothing happens; zero for never.
func (w *waitClock) end() time.Time {
	if !w.running {
		return time.Time{}
	}
	return w.since.Add(w.limit - w.waited)
}

// An alarm calls a function no later than at the time that it was last set to.
// Set to a later time, it still goes off at the earlier one, finds nothing to do and is
// set again: that is cheaper than resetting it whenever a script pauses.
type alarm struct {
	timer *time.Timer
	at    time.Time // zero if it will not go off
}

func (a *alarm) set(now, at time.Time, f func()) {
	switch {
	case a.timer == nil:
		a.timer = time.AfterFunc(at.Sub(now), f)
	case a.at.IsZero() || at.Before(a.at):
		a.timer.Reset(at.Sub(now))
	default:
		return
	}
	a.at = at
}

// wentOff notes that the alarm went off: it does not go off again unless it is set.
func (a *alarm) wentOff() { a.at = time.Time{} }

// passed reports whether a moment has come; the zero time never does.
func passed(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// earlier is the earlier of two times; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A scriptTimer is a timer of the script. Timers fire in the order of their times, and
// those with the same time in the order in which they were set.
type scriptTimer struct {
	at     time.Time
	number int
}

// scriptTimers are the open timers that a run serves itself.
type scriptTimers struct{ heap timerHeap }

func (s *scriptTimers) add(at time.Time, number int) {
	heap.Push(&s.heap, scriptTimer{at: at, number: number})
}

// next returns when the next timer is due; zero if there is none.
func (s *scriptTimers) next() time.Time {
	if len(s.heap) == 0 {
		return time.Time{}
	}
	return s.heap[0].at
}

// take removes the timers that are due and returns their numbers.
func (s *scriptTimers) take(now time.Time) (numbers []int) {
	for len(s.heap) > 0 && !s.heap[0].at.After(now) {
		numbers = append(numbers, heap.Pop(&s.heap).(scriptTimer).number)
	}
	return numbers
}

type timerHeap []scriptTimer

func (h timerHeap) Len() int      { return len(h) }
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].number < h[j].number
}
func (h *timerHeap) Push(x any) { *h = append(*h, x.(scriptTimer)) }
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
