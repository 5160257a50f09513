package sandbox

import "time"

// All workers share one budget of memory, Options.Memory. What counts is the memory
// that they use, as reported by the system, and not their limits: most scripts need a
// hundredth of their heap limit.
//
//   - A worker without a run counts with what it uses, and one that runs or starts with at least
//     reserve. A run begins only if there is room for that. Until then it waits
//     in the queue, and ends with a *LimitError after Options.MemoryWait.
//   - What it uses is its own: the pages of its program are in memory once for all workers.
//   - While scripts run, the use is measured every weighEvery. If it is more than
//     the budget, workers without a run are ended and, where that is not enough,
//     the run whose worker uses most, with a *LimitError.
//
// Where the system does not report it (macOS, Windows), a worker counts with its heap
// limit from start to end, and no run is ended for what others use.

const (
	// reserve is the least that a worker with a run counts with: what it uses with a small
	// script, and some room to grow until it is measured.
	reserve = 64 << 20
	// weighEvery is how often the use is measured while scripts run.
	weighEvery = 100 * time.Millisecond
	// unknownMemory is the assumed memory of a machine that does not report it.
	unknownMemory = 4 << 30
)

// defaultMemory is half of the machine's memory that this program may use.
func defaultMemory() int64 {
	if all, ok := machineMemory(); ok {
		return all / 2
	}
	return unknownMemory / 2
}

// counts returns the memory that the worker counts with.
func (w *process) counts() int64 {
	if w.unmeasured {
		return w.heap
	}
	if w.rests && w.measured {
		return w.used
	}
	return max(w.used, min(reserve, w.heap))
}

// need returns what a worker with such a heap limit counts with before it is
// measured.
func need(heap int64) int64 {
	if !measuresMemory {
		return heap
	}
	return min(reserve, heap)
}

// fitsLocked reports whether the budget has room for one more worker. The first
// one always fits.
func (p *Pool) fitsLocked(heap int64) bool { return p.slots == 0 || p.roomLocked(nil, need(heap)) }

// risesLocked reports whether the budget has room for a run in a worker that rests, which counts
// with more from then on. There always is for one alone. If so, it rests no more.
func (p *Pool) risesLocked(w *process) bool {
	fits := w.unmeasured || p.slots == 1 || p.roomLocked(w, max(w.used, need(w.heap)))
	if fits {
		w.rests = false
	}
	return fits
}

// roomLocked reports whether all but one worker leave room for so much. If there is none,
// those that have come to rest since they were measured are measured first.
func (p *Pool) roomLocked(but *process, more int64) bool {
	starting := int64(p.slots - len(p.workers))
	all := more + starting*need(p.options.Limits.Heap)
	for w := range p.workers {
		if w != but {
			all += w.counts()
		}
	}
	for w := range p.workers {
		if all <= p.options.Memory {
			break
		}
		if w != but && w.rests && !w.measured && p.options.Serve == nil {
			all -= w.counts()
			p.measureLocked(w)
			all += w.counts()
		}
	}
	return all <= p.options.Memory
}

// measureLocked notes what a worker uses.
func (p *Pool) measureLocked(w *process) {
	used, ok := w.memory()
	w.used, w.measured, w.unmeasured = used, true, !ok
}

// weighLocked measures from time to time what the workers use while scripts run or
// wait, and enforces the budget. It returns when to do so again; the zero time if there
// is no need.
func (p *Pool) weighLocked(now time.Time) (next time.Time) {
	if p.stats.Running == 0 && len(p.queue) == 0 || p.options.Serve != nil { // what is served here is measured with the bridge
		return time.Time{}
	}
	if next = p.weighed.Add(weighEvery); now.Before(next) {
		return next
	}
	p.weighed = now
	var all int64
	for w := range p.workers {
		if p.measureLocked(w); !w.makesRoom() {
			all += w.used
		}
	}
	for all > p.options.Memory {
		victim := p.evictLocked()
		if victim == nil {
			victim = p.largestLocked()
			victim.overran.Store(p.options.Memory)
			victim.kill()
		}
		all -= victim.used
	}
	if len(p.queue) > 0 {
		p.dispatchLocked()
	}
	return now.Add(weighEvery)
}

// largestLocked returns the worker that uses most, among those that are not ending.
func (p *Pool) largestLocked() (largest *process) {
	for w := range p.workers {
		if !w.makesRoom() && (largest == nil || w.used > largest.used) {
			largest = w
		}
	}
	return largest
}

// makesRoom reports whether the worker was killed to make room for others.
func (w *process) makesRoom() bool { return w.evicted || w.overran.Load() != 0 }
