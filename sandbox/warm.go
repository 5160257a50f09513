package sandbox

import "time"

// A pool keeps Options.Warm workers ready. While many sessions take turns, nearly every run needs
// a worker that nobody has used, and would wait for its start: then more are kept ready, up to
// a share of all workers, until no session has asked for one for quiet. They come
// out of the budget of memory like all others, and, where there is no room left, take the places of
// workers that sessions keep without a run, the longest idle first.

const (
	// turnsWithin is how soon after one session another asks for a worker where they take turns.
	turnsWithin = time.Second
	// quiet is how long after the last run that needed a worker no more of them are kept
	// ready than usual.
	quiet = 10 * time.Second
	// warmShare is the share of all workers, one in so many, that are kept ready at most.
	warmShare = 4
)

// askedLocked notes that a run needs a worker that nobody has used. Each that finds none while
// sessions take turns makes one more be kept ready.
func (p *Pool) askedLocked(now time.Time, heap int64) {
	usual := heap == p.options.Limits.Heap // those that are kept ready have no other
	if turns := now.Sub(p.asked) < turnsWithin; turns && usual && p.options.Warm > 0 && p.readyLocked(heap) == nil {
		p.ahead = min(p.ahead+1, max(0, p.options.MaxWorkers/warmShare-p.options.Warm))
	}
	p.asked = now
}

// relaxLocked ends the workers that are kept ready beyond the usual once it is quiet. It returns
// when to look again; the zero time if there are none.
func (p *Pool) relaxLocked(now time.Time) (next time.Time) {
	if p.ahead == 0 {
		return time.Time{}
	}
	if next = p.asked.Add(quiet); now.Before(next) {
		return next
	}
	p.ahead = 0
	for len(p.warm) > max(0, p.options.Warm) {
		last := len(p.warm) - 1
		p.warm[last].kill()
		p.warm = p.warm[:last]
	}
	return time.Time{}
}

// wantsWarmLocked reports whether a worker is to be started and kept ready. If all that is missing
// is its place, and sessions take turns, it has one made.
func (p *Pool) wantsWarmLocked(now time.Time) bool {
	if len(p.queue) > 0 || len(p.warm) >= p.options.Warm+p.ahead || !p.fitsLocked(p.options.Limits.Heap) {
		return false
	}
	if p.slots < p.options.MaxWorkers {
		return true
	}
	if p.ahead > 0 && p.evicting == 0 && len(p.idle) > 0 && !now.Before(p.retryAt) {
		p.evictLocked()
	}
	return false
}
