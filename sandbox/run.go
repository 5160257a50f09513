package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

// maxOpenArgs bounds the arguments of all open calls together, in bytes.
const maxOpenArgs = 64 << 20

// A run is one script in one worker, from the Run frame to the end.
//
//	worker ──▶ reader ──▶ open calls ──▶ one goroutine a call ──▶ host
//	                                                               │
//	worker ◀── reply queue ◀───────── answers ◀────────────────────┘
//	                                     ▲
//	                alarm: script timers, limits of CPU time and waiting
//
// reader.go checks each frame against what may come at that moment; calls.go
// knows which calls are open; answers.go and queue.go deliver answers, in the one
// order in which the script sees them; clock.go measures. A call, the clock and the
// queue change together (an idle worker's clock stands still unless an answer is on
// its way), so they share one lock, which is the run's.
//
// Most of the time between a script and its answers is spent waking threads, so
// there are two shortcuts. If the script waits for a single call and nothing else, the
// reader makes that call itself, since it has nothing to read meanwhile. And an answer
// that finds the worker waiting is written by whoever gives it.
type run struct {
	p      *process
	id     uint64
	limits Limits
	host   Host
	timers TimerHost // nil: timers are served here
	order  OrderHost // nil: nobody asks

	ctx     context.Context // of the host's calls; ends with the run
	cancel  context.CancelFunc
	calls   sync.WaitGroup // goroutines in the host's methods
	readers sync.WaitGroup // readers that took over

	// Owned by the goroutine that reads.
	newest *Call // not started yet: if Idle follows, the reader makes it itself

	mu       sync.Mutex // guards all below
	ended    bool
	err      error // the first reason for the end; nil if it was Done
	result   Result
	received received
	open     openCalls
	due      scriptTimers
	queue    replyQueue
	turn     readerTurn
	clock    scriptClock
	waiting  waitClock
	alarm    alarm
}

// newRun returns a run whose clock is running.
func newRun(ctx context.Context, p *process, start time.Time, limits Limits, host Host) *run {
	now := time.Now()
	if start = start.Round(0); start.IsZero() {
		start = now
	}
	p.runs++
	r := &run{
		p: p, id: p.runs, limits: limits, host: host,
		open:    openCalls{limits: limits, byNumber: make(map[int]*openCall)},
		queue:   replyQueue{run: p.runs, last: start},
		clock:   newScriptClock(limits.CPU, p.cpu, now),
		waiting: waitClock{limit: limits.Waiting},
	}
	r.timers, _ = host.(TimerHost)
	r.order, _ = host.(OrderHost)
	if h, ok := host.(YieldHost); ok {
		h.Yields(r.yield)
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// serve runs the script in p and reports whether p can be used again.
func serve(ctx context.Context, p *process, script Script, limits Limits, host Host) (Result, bool, error) {
	r := newRun(ctx, p, script.Start, limits, host)
	defer r.cancel()
	start := r.queue.last
	p.conn.SetMaxBody(max(limits.Result, wire.MaxArgs))

	// From here on the run may be ended from outside: by its alarm or its
	// context.
	r.mu.Lock()
	r.setAlarmLocked(time.Now())
	r.mu.Unlock()
	defer r.alarm.timer.Stop()
	defer context.AfterFunc(ctx, func() {
		r.fail(fmt.Errorf("running script: %w", context.Cause(ctx)))
	})()

	if err := r.writeScript(script, start); err != nil {
		r.unwritten(err)
	}
	r.read()
	r.readers.Wait()
	clean := r.drain()
	r.calls.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	var own *ScriptError
	usable := clean && (r.err == nil || errors.As(r.err, &own))
	return r.result, usable, r.err
}

func (r *run) writeScript(script Script, start time.Time) error {
	conn := r.p.conn
	names := script.Names
	if names == nil {
		names = &Names{}
	}
	if !r.p.named || r.p.revision != names.Revision {
		err := conn.Write(wire.KindNames,
			wire.Names{Revision: names.Revision, Servers: names.Servers},
			[]byte(strings.Join(names.Names, "\x00")))
		if err != nil {
			return err
		}
		r.p.named, r.p.revision = true, names.Revision
	}
	return conn.Send(wire.KindRun, wire.Run{
		ID:        r.id,
		Revision:  names.Revision,
		InputSize: len(script.Input),
		Seed:      script.Seed,
		Start:     start.UTC(),
		Limits: wire.Limits{
			CPU:      r.limits.CPU,
			Calls:    r.limits.Calls,
			Parallel: r.limits.Parallel,
			Logs:     r.limits.Logs,
			Result:   r.limits.Result,
		},
	}, script.Input, []byte(script.Source))
}

// yield begins the next call in the place of one that waits.
func (r *run) yield(call int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if next := r.open.yield(call); next != nil {
		r.start(*next)
	}
}

// start hands a call to the host.
func (r *run) start(c Call) {
	r.calls.Go(func() { r.host.Call(r.ctx, c, r.answerer(c.Number)) })
}

// startClockLocked starts the script's clock: it has something to do.
func (r *run) startClockLocked(now time.Time) {
	if !r.clock.running && !r.ended {
		r.waiting.stop(now)
		r.clock.start(now)
		r.setAlarmLocked(now)
	}
}

// stopClockLocked stops the script's clock: the worker is idle.
func (r *run) stopClockLocked(now time.Time) {
	r.clock.stop(now)
	if r.open.onlyTimers() {
		r.waiting.start(now)
	}
	r.setAlarmLocked(now)
}

// waitingEndsLocked returns when the script will have waited for only its timers for
// too long; zero for never. With an answer queued the worker is about to run again.
func (r *run) waitingEndsLocked() time.Time {
	if len(r.queue.replies) > 0 {
		return time.Time{}
	}
	return r.waiting.end()
}

// setAlarmLocked sets the alarm to the next moment at which there is something
// to do.
func (r *run) setAlarmLocked(now time.Time) {
	next := r.clock.next(now)
	for _, t := range []time.Time{r.due.next(), r.turn.due(), r.waitingEndsLocked()} {
		next = earlier(next, t)
	}
	r.alarm.set(now, next, r.tick)
}

// tick does what is due.
func (r *run) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.alarm.wentOff()
	now := time.Now()
	for _, number := range r.due.take(now) {
		r.answerLocked(number, Reply{})
	}
	r.deliverLaterLocked() // not here: nothing may hold up the alarm
	if passed(r.turn.due(), now) {
		r.takeOverLocked()
	}
	r.clock.sample(now)
	if limit := r.clock.exceeded(now); limit != "" {
		r.failLocked(&LimitError{Limit: limit, Value: r.limits.text(limit)})
		return
	}
	if passed(r.waitingEndsLocked(), now) {
		r.failLocked(&LimitError{Limit: wire.LimitWaiting, Value: duration(r.limits.Waiting), Position: r.open.newestTimer()})
		return
	}
	r.setAlarmLocked(now)
}

// endLocked ends the run for the given reason; nil means that Done ended it. Only the
// first end counts; endLocked reports whether this was it.
func (r *run) endLocked(err error) bool {
	if r.ended {
		return false
	}
	r.ended, r.err = true, err
	r.clock.stop(time.Now())
	r.result.Calls = r.open.calls()
	if r.result.CPU <= 0 {
		r.result.CPU = r.clock.charged(time.Time{})
	}
	r.result.CPU = min(r.result.CPU, r.clock.used)
	r.open.forget()
	r.queue.replies, r.due = nil, scriptTimers{}
	r.cancel()
	return true
}

// fail ends the run, and with it the worker.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

func (r *run) failLocked(err error) {
	if r.endLocked(err) {
		r.p.kill()
	}
}

// bad returns the reason for ending a run because of what the worker sent.
func bad(format string, args ...any) error {
	return &WorkerError{"broke the protocol: " + fmt.Sprintf(format, args...)}
}
