package sandbox

import (
	"container/heap"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// The script's clock.

func (r *run) startClockLocked(now time.Time) {
	if !r.running && !r.ended {
		if r.resting {
			r.rested += now.Sub(r.restAt)
			r.resting = false
		}
		r.running, r.since = true, now
		r.armLocked(now)
	}
}

func (r *run) stopLocked(now time.Time) {
	if r.running {
		r.used += now.Sub(r.since)
		r.running = false
	}
}

// shownLocked returns what the script's clock shows.
func (r *run) shownLocked(now time.Time) time.Duration {
	if r.running {
		return r.used + now.Sub(r.since)
	}
	return r.used
}

// chargedLocked returns what counts as CPU time: the clock's time, with what the
// worker used beyond that, but no more than the processor time that the system
// knows of. A script that waits for a processor is not charged for that, and one
// whose worker collects garbage on other processors not for more than its time.
func (r *run) chargedLocked(now time.Time) time.Duration {
	shown := r.shownLocked(now) + r.burnt
	if cpu, ok := r.p.cpu(); ok && r.metered {
		return min(shown, cpu-r.cpuAt)
	}
	return shown
}

// restLocked starts the clock of waiting if the idle worker waits for nothing
// but timers: a worker is not held for a script that only lets time pass.
func (r *run) restLocked(now time.Time) {
	for _, o := range r.open {
		if !o.timer {
			return
		}
	}
	r.resting, r.restAt = true, now
}

// newestTimerLocked returns where the timer was set that was set last.
func (r *run) newestTimerLocked() (at analysis.Position) {
	newest := 0
	for n, o := range r.open {
		if o.timer && n > newest {
			newest, at = n, o.at
		}
	}
	return at
}

// armLocked sees to it that the clock comes no later than at the next moment
// at which there is something to do. One that comes earlier finds nothing and
// is set again: that is cheaper than to set it anew whenever the script pauses.
func (r *run) armLocked(now time.Time) {
	next := r.sample
	if len(r.due) > 0 && r.due[0].at.Before(next) {
		next = r.due[0].at
	}
	if r.running {
		shown := r.shownLocked(now)
		end := wire.WallFactor * (r.limits.CPU + grace)
		if r.metered {
			end = min(end, r.limits.CPU+grace+r.spare-r.burnt)
		}
		if at := now.Add(end - shown); at.Before(next) {
			next = at
		}
	}
	if !r.inline.IsZero() {
		if at := r.inline.Add(takeOverAfter); at.Before(next) {
			next = at
		}
	}
	// With an answer queued the worker is about to run again.
	if r.resting && len(r.queue) == 0 {
		if at := r.restAt.Add(r.limits.Waiting - r.rested); at.Before(next) {
			next = at
		}
	}
	switch {
	case r.clock == nil:
		r.clock = time.AfterFunc(next.Sub(now), r.tick)
	case r.clockAt.IsZero() || next.Before(r.clockAt):
		r.clock.Reset(next.Sub(now))
	default:
		return
	}
	r.clockAt = next
}

// tick does what is due.
func (r *run) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.clockAt = time.Time{}
	now := time.Now()
	for len(r.due) > 0 && !r.due[0].at.After(now) {
		t := heap.Pop(&r.due).(scriptTimer)
		r.settleLocked(t.number, Reply{})
	}
	r.deliverLaterLocked() // not here: nothing may hold up the clock
	if !r.inline.IsZero() && now.Sub(r.inline) >= takeOverAfter {
		r.takeOverLocked()
	}
	if !r.sample.After(now) {
		r.sampleLocked(now)
		r.sample = now.Add(sampleEvery)
	}
	shown := r.shownLocked(now)
	if r.metered && shown+r.burnt-r.spare >= r.limits.CPU+grace {
		charged := r.chargedLocked(now)
		if charged >= r.limits.CPU+grace {
			r.failLocked(&LimitError{Limit: wire.LimitCPU, Value: r.value(wire.LimitCPU)})
			return
		}
		r.spare = shown + r.burnt - charged
	}
	if shown >= wire.WallFactor*(r.limits.CPU+grace) {
		r.failLocked(&LimitError{Limit: wire.LimitWall, Value: r.value(wire.LimitWall)})
		return
	}
	if r.resting && len(r.queue) == 0 && r.rested+now.Sub(r.restAt) >= r.limits.Waiting {
		r.failLocked(&LimitError{Limit: wire.LimitWaiting, Value: duration(r.limits.Waiting), Position: r.newestTimerLocked()})
		return
	}
	r.armLocked(now)
}

// sampleLocked compares the worker's processor time with its clock. A worker
// that says Idle and works on is charged for what it really uses. A twentieth
// of a processor is free, and three while it runs: it collects garbage and
// watches its own memory.
func (r *run) sampleLocked(now time.Time) {
	cpu, ok := r.p.cpu()
	if !ok {
		return
	}
	shown := r.shownLocked(now)
	if last := r.sampled; !last.at.IsZero() {
		excess := (cpu - last.cpu) - now.Sub(last.at)/20 - 3*(shown-r.usedAt)
		r.burnt += max(0, excess)
	}
	r.sampled, r.usedAt = sample{now, cpu}, shown
}

// scriptTimer is a timer of the script. Timers end in the order of their
// times, those of one time in the order in which they were set.
type scriptTimer struct {
	at     time.Time
	number int
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
