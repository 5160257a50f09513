// Package sandbox runs scripts in worker processes.
//
// A script comes from a model and may do anything: loop in native code, grow
// without end, overflow the parser's stack, or break out of its runtime. So
// nothing in this process parses, runs or formats it. A Pool keeps a few
// codemode-worker processes ready. A Session, which belongs to one client,
// takes one at its first run, keeps it while it is in use, and never returns it
// to the pool: whatever a script leaves behind in a worker can only affect scripts
// of the same client.
//
//	pool, err := sandbox.NewPool(sandbox.Options{Worker: "/usr/lib/codemode-worker"})
//	...
//	session := pool.Session()
//	defer session.Close()
//	result, err := session.Run(ctx, sandbox.Script{Source: "return 1 + 1"}, host)
//
// The script's calls go to the Host, which answers them in its own time.
// Time spent waiting for answers counts against no limit.
//
// A worker is treated as hostile: each of its frames is bounded and checked
// against what may come at that moment, and a worker that breaks the protocol or a
// limit is killed, which ends only its own run. Package wire describes the frames;
// sandbox/worker is the other end.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

const (
	// After a worker that could not be kept ready, the next one is tried after
	// minRetry, then after twice that, up to maxRetry.
	minRetry = time.Second
	maxRetry = 30 * time.Second
	// firstSample is how long a worker has been idle when its processor time is
	// sampled for the first time, after which it is every idleSampleEvery.
	firstSample = time.Second
)

// A Pool keeps worker processes for sessions. Its methods may be called by
// several goroutines at once.
type Pool struct {
	options Options
	launch  func(heap int64) (*process, error)
	ctx     context.Context // ends when the pool is closed
	cancel  context.CancelCauseFunc
	keeper  sync.WaitGroup // the goroutine that runs keep
	reapers sync.WaitGroup // one goroutine a process
	wake    chan struct{}  // tells keep to look again

	mu       sync.Mutex // guards all below
	closed   bool
	sessions map[*Session]struct{}
	warm     []*process            // ready, never used
	idle     []*Session            // that hold a worker without a run, the longest idle first
	queue    []*waiter             // runs that wait for a worker, in order
	slots    int                   // workers that are starting, live, or killed and not yet reaped
	workers  map[*process]struct{} // those that were launched, of slots
	weighed  time.Time             // when their memory was last measured
	evicting int                   // those killed to make room that are not yet reaped
	asked    time.Time             // when a run last needed a worker that nobody has used
	ahead    int                   // workers that are kept ready beyond Options.Warm: see warm.go
	retry    time.Duration
	retryAt  time.Time // until then no worker is started to be kept ready
	lookAt   time.Time // when keep looks again by itself; zero if it will not, or is looking
	stats    Status
}

// A waiter is a run that waits for a worker.
type waiter struct {
	heap    int64
	granted chan *process // gets one worker, or nil for room to start one
}

// Status describes a pool at a moment.
type Status struct {
	Live     int    `json:"live"`     // worker processes, starting and ending ones included
	Warm     int    `json:"warm"`     // of these, ready and never used
	Idle     int    `json:"idle"`     // of these, kept by a session without a run
	Running  int    `json:"running"`  // of these, running a script
	Queued   int    `json:"queued"`   // runs that wait for a worker
	Sessions int    `json:"sessions"` // open sessions
	Started  uint64 `json:"started"`  // workers that became ready since the pool began
	Killed   uint64 `json:"killed"`   // of these, ended by a limit, a breach or a cancelled run
	// KilledFor says of those killed how many for which reason: the limit that a script
	// exceeded, or one of Cancelled, Died and Restless.
	KilledFor map[string]uint64 `json:"-"`
	// Hardening is what confines the newest worker, step by step, as it reports
	// itself.
	Hardening map[string]string `json:"hardening,omitempty"`
}

// Reasons for which workers are killed, besides limits.
const (
	Cancelled = "cancelled" // its run was ended from outside
	Died      = "died"      // it ended by itself, or broke the protocol
	Restless  = "restless"  // it used the processor without a run
)

// killedLocked counts a worker that was ended before its time.
func (p *Pool) killedLocked(reason string) {
	p.stats.Killed++
	if p.stats.KilledFor == nil {
		p.stats.KilledFor = make(map[string]uint64)
	}
	p.stats.KilledFor[reason]++
}

// killedFor returns why the worker of a run that ended with err is killed.
func killedFor(err error) string {
	var limit *LimitError
	var worker *WorkerError
	switch {
	case errors.As(err, &limit):
		return limit.Limit
	case err == nil, errors.As(err, &worker): // without an error, it did not come to rest
		return Died
	}
	return Cancelled
}

// NewPool returns a pool and starts a goroutine that keeps workers ready.
// Close ends it.
func NewPool(o Options) (*Pool, error) {
	launch, err := o.launcher()
	if err != nil {
		return nil, err
	}
	return newPool(o, launch), nil
}

func newPool(o Options, launch func(heap int64) (*process, error)) *Pool {
	p := &Pool{
		options:  o.withDefaults(),
		launch:   launch,
		wake:     make(chan struct{}, 1),
		sessions: make(map[*Session]struct{}),
		workers:  make(map[*process]struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background()) // until Close
	p.keeper.Go(p.keep)
	return p
}

// Close ends all sessions with their runs, and all workers. It returns when every
// process and goroutine of the pool has ended; the result is always nil. It must not
// be called by a Host.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	sessions := make([]*Session, 0, len(p.sessions))
	for s := range p.sessions {
		sessions = append(sessions, s)
	}
	p.mu.Unlock()

	p.cancel(ErrClosed)
	p.keeper.Wait()
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(s.Close)
	}
	all.Wait()

	p.mu.Lock()
	for _, w := range p.warm {
		w.kill()
	}
	p.warm = nil
	p.mu.Unlock()
	p.reapers.Wait()
	return nil
}

// Session returns a new session. It holds no worker until its first run.
func (p *Pool) Session() *Session {
	s := &Session{pool: p}
	s.ctx, s.cancel = context.WithCancelCause(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed = p.closed; !s.closed {
		p.sessions[s] = struct{}{}
	}
	return s
}

// Status returns what the pool is doing.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Live, s.Warm, s.Idle = p.slots, len(p.warm), len(p.idle)
	s.Queued, s.Sessions = len(p.queue), len(p.sessions)
	s.Hardening, s.KilledFor = maps.Clone(s.Hardening), maps.Clone(s.KilledFor)
	return s
}

// Limits returns the limits of the pool's runs, defaults filled in.
func (p *Pool) Limits() Limits { return p.options.Limits }

// acquire returns a worker with the given heap limit that no session has
// used: a ready one, or a new one, as soon as there is room for it.
func (p *Pool) acquire(ctx context.Context, heap int64) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	w := &waiter{heap: heap, granted: make(chan *process, 1)}
	p.queue = append(p.queue, w)
	p.askedLocked(time.Now(), heap)
	p.dispatchLocked()
	crowded := p.evicting < len(p.queue)
	if len(p.queue) > 0 {
		p.lookByLocked(time.Now().Add(weighEvery))
	}
	p.mu.Unlock()
	if crowded && p.options.Crowded != nil {
		p.options.Crowded()
	}

	patience := time.NewTimer(p.options.MemoryWait)
	defer patience.Stop()
	for {
		select {
		case got := <-w.granted:
			if got != nil {
				return got, nil
			}
			return p.start(ctx, heap)
		case <-patience.C:
			if err := p.giveUp(w); err != nil {
				return nil, err
			}
			patience.Reset(p.options.MemoryWait)
		case <-ctx.Done():
			p.withdraw(w)
			return nil, fmt.Errorf("waiting for a worker: %w", context.Cause(ctx))
		}
	}
}

// withdraw ends the wait of a run that needs no worker any more. If one was granted
// at the same moment, it goes back.
func (p *Pool) withdraw(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaveLocked(w) {
		return
	}
	if got := <-w.granted; got != nil {
		got.rests = true
		p.warm = append(p.warm, got)
	} else {
		p.slots--
	}
	p.dispatchLocked()
}

// giveUp ends the wait of a run for lack of memory. It returns nil if the run
// waits for something else, or waits no longer.
func (p *Pool) giveUp(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots >= p.options.MaxWorkers || !p.leaveLocked(w) {
		return nil
	}
	return &LimitError{Limit: wire.LimitTotalMemory, Value: size(p.options.Memory), Waited: duration(p.options.MemoryWait)}
}

// leaveLocked takes a run out of the queue and reports whether it was in it.
func (p *Pool) leaveLocked(w *waiter) bool {
	i := slices.Index(p.queue, w)
	if i < 0 {
		return false
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	return true
}

// dispatchLocked gives workers, or room to start one, to the waiting runs in their
// order. If there is no room, by number or by memory, it makes some: it ends the
// workers that sessions keep without a run, the longest idle first, or a ready one
// that does not fit.
func (p *Pool) dispatchLocked() {
	for len(p.queue) > 0 {
		w := p.queue[0]
		switch got := p.readyLocked(w.heap); {
		case got != nil && p.risesLocked(got):
			p.warm = slices.DeleteFunc(p.warm, func(other *process) bool { return other == got })
			w.granted <- got
		case p.slots < p.options.MaxWorkers && p.fitsLocked(w.heap):
			p.slots++
			w.granted <- nil
		default:
			for p.evicting < len(p.queue) && p.evictLocked() != nil {
			}
			return
		}
		p.queue = p.queue[1:]
	}
	p.wakeKeeper()
}

// readyLocked returns a worker that is ready; nil if there is none with such a heap limit.
func (p *Pool) readyLocked(heap int64) *process {
	i := slices.IndexFunc(p.warm, func(w *process) bool { return w.heap == heap })
	if i < 0 {
		return nil
	}
	return p.warm[i]
}

// evictLocked ends a worker without a run and returns it; nil if there is none.
func (p *Pool) evictLocked() (victim *process) {
	switch {
	case len(p.idle) > 0:
		victim = p.dropIdleLocked(p.idle[0])
	case len(p.warm) > 0:
		victim = p.warm[0]
		p.warm = p.warm[1:]
	default:
		return nil
	}
	p.endLocked(victim)
	return victim
}

// endLocked ends a worker without a run to make room.
func (p *Pool) endLocked(w *process) {
	p.evicting++
	w.evicted = true
	w.kill()
}

// dropIdleLocked takes its worker from an idle session.
func (p *Pool) dropIdleLocked(s *Session) *process {
	w := s.idle
	s.idle = nil
	p.idle = slices.DeleteFunc(p.idle, func(other *Session) bool { return other == s })
	return w
}

// start starts a worker and waits until it is ready. The caller has reserved
// its slot, which is free again when the process has ended or could not be
// started.
func (p *Pool) start(ctx context.Context, heap int64) (*process, error) {
	w, err := p.launch(heap)
	if err != nil {
		p.mu.Lock()
		p.slots--
		p.dispatchLocked()
		p.mu.Unlock()
		return nil, err
	}
	p.mu.Lock()
	p.workers[w] = struct{}{}
	p.mu.Unlock()
	p.reapers.Go(func() { p.reap(w) })
	if err := w.handshake(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.stats.Started++
	p.stats.Hardening = w.ready.Hardening
	p.mu.Unlock()
	return w, nil
}

// reap waits for the end of a process and frees its slot.
func (p *Pool) reap(w *process) {
	w.ending = w.wait()
	close(w.exited)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots--
	delete(p.workers, w)
	if w.evicted {
		p.evicting--
	}
	// Did it end unexpectedly?
	for i := range p.warm {
		if p.warm[i] == w {
			p.warm = slices.Delete(p.warm, i, i+1)
			p.delayLocked()
			p.options.Logger.Warn("a ready worker ended", "pid", w.pid, "status", w.ending.status, "stderr", w.ending.stderr)
			break
		}
	}
	for _, s := range p.idle {
		if s.idle == w {
			p.dropIdleLocked(s)
			p.options.Logger.Warn("an idle worker ended", "pid", w.pid, "status", w.ending.status, "stderr", w.ending.stderr)
			break
		}
	}
	p.dispatchLocked()
}

// release takes a worker from a run that has ended. A worker that can be
// used again stays with the session, unless somebody waits for its place;
// otherwise release returns when it is gone. Err is that of the run.
func (p *Pool) release(s *Session, w *process, usable bool, err error) {
	p.mu.Lock()
	keep := usable && p.mayKeepLocked(s) && !w.gone()
	p.stats.Running--
	if !usable {
		p.killedLocked(killedFor(err))
	}
	if keep {
		now := time.Now()
		s.idle, s.since = w, now
		w.sampled = sample{}
		w.rests, w.measured = true, false
		p.idle = append(p.idle, s)
		// A keeper that will look soon need not be woken after every run.
		p.lookByLocked(now.Add(min(firstSample, p.options.IdleTimeout)))
	}
	p.mu.Unlock()
	if !keep {
		w.kill()
		<-w.exited
	}
}

// mayKeepLocked reports whether a session may keep a worker without a run.
func (p *Pool) mayKeepLocked(s *Session) bool {
	switch {
	case p.closed, s.closed, p.options.Fresh:
		return false
	case s.idle != nil: // it has one
		return false
	}
	return len(p.queue) == 0 // nobody waits for its place
}

// lookByLocked makes the keeper look again by a time.
func (p *Pool) lookByLocked(t time.Time) {
	if p.lookAt.IsZero() || p.lookAt.After(t) {
		p.wakeKeeper()
	}
}

func (p *Pool) wakeKeeper() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// keep keeps workers ready, ends those that were idle for too long, and enforces the
// memory budget, until the pool is closed.
func (p *Pool) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p.ctx.Err() == nil {
		p.mu.Lock()
		now := time.Now()
		next := earlier(earlier(p.expireLocked(now), p.weighLocked(now)), p.relaxLocked(now))
		start := p.wantsWarmLocked(now)
		if start && now.Before(p.retryAt) {
			start, next = false, earlier(next, p.retryAt)
		}
		p.lookAt = next
		if start {
			p.slots++
			p.lookAt = time.Time{}
		}
		p.mu.Unlock()

		if start {
			p.addWarm()
			continue
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(next.Sub(now))
		}
		select {
		case <-p.ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// addWarm starts a worker to be kept ready, in a slot that was reserved.
func (p *Pool) addWarm() {
	w, err := p.start(p.ctx, p.options.Limits.Heap)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.delayLocked()
		if !errors.Is(err, ErrClosed) {
			p.options.Logger.Error("no worker could be kept ready", slog.Any("error", err), "retry", p.retry.String())
		}
		return
	}
	if w.gone() {
		p.delayLocked()
		return
	}
	p.retry = 0
	w.rests = true
	p.warm = append(p.warm, w)
	p.dispatchLocked()
}

// delayLocked puts off the next try to keep a worker ready.
func (p *Pool) delayLocked() {
	p.retry = min(max(2*p.retry, minRetry), maxRetry)
	p.retryAt = time.Now().Add(p.retry)
}

// expireLocked ends workers that were idle for too long, or that are busy without a
// run, and returns when to check again; the zero time if never.
func (p *Pool) expireLocked(now time.Time) (next time.Time) {
	for i := 0; i < len(p.idle); {
		s := p.idle[i]
		expiry := s.since.Add(p.options.IdleTimeout)
		if busy := now.Sub(s.since) >= firstSample && s.idle.busy(now); busy || !expiry.After(now) {
			if busy {
				p.killedLocked(Restless)
				p.options.Logger.Warn("an idle worker did not rest", "pid", s.idle.pid)
			}
			p.dropIdleLocked(s).kill()
			continue
		}
		next = earlier(next, expiry)
		if last := s.idle.sampled; last.at.IsZero() {
			next = earlier(next, s.since.Add(firstSample))
		} else {
			next = earlier(next, last.at.Add(idleSampleEvery))
		}
		i++
	}
	return next
}

// beginLocked notes that a run begins.
func (p *Pool) beginLocked() {
	p.stats.Running++
	// The timer that is set anyway is soon enough for most runs.
	p.lookByLocked(time.Now().Add(weighEvery))
}
