package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

// A Session runs the scripts of one client. Its methods may be called by
// several goroutines at once.
type Session struct {
	pool   *Pool
	ctx    context.Context // ends when the session or its pool is closed
	cancel context.CancelCauseFunc
	runs   sync.WaitGroup

	// Guarded by pool.mu.
	closed bool
	idle   *process  // kept between runs
	since  time.Time // when it became idle
}

// Run runs a script and returns its result. The script's calls go to host.
//
// Several runs of a session go on at the same time; each has a worker of its
// own. A run that finds no room for a worker waits for one, after the runs
// that waited before it. When ctx ends, the run does.
//
// The error is a *ScriptError if the script failed, a *LimitError if it
// exceeded a limit, a *WorkerError if its worker ended or had to be ended,
// or wraps ErrClosed or the cause of ctx's end. When Run returns, no
// method of host is running or will be called, and the worker is idle or
// gone.
func (s *Session) Run(ctx context.Context, script Script, host Host) (Result, error) {
	limits := s.pool.options.Limits.Tighten(script.Limits)
	if n := int64(len(script.Source)); n > limits.Source {
		return Result{}, &LimitError{Limit: wire.LimitSource, Value: size(limits.Source), Actual: size(n)}
	}
	if n := int64(len(script.Input)); n > limits.Input {
		return Result{}, &LimitError{Limit: wire.LimitInput, Value: size(limits.Input), Actual: size(n)}
	}
	if !s.enter() {
		return Result{}, ErrClosed
	}
	defer s.runs.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })()

	worker, err := s.worker(ctx, limits.Heap)
	if err != nil {
		return Result{}, err
	}
	result, usable, err := serve(ctx, worker, script, limits, host)
	s.pool.release(s, worker, usable, err)
	if died := (*WorkerError)(nil); errors.As(err, &died) {
		s.pool.options.Logger.Warn("a worker ended with its run",
			"pid", worker.pid, "reason", died.Reason, "status", worker.ending.status, "stderr", worker.ending.stderr)
	}
	return result, err
}

func (s *Session) enter() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return false
	}
	s.runs.Add(1)
	return true
}

// worker returns the session's own worker if it is there and fits, or one
// that nobody has used.
func (s *Session) worker(ctx context.Context, heap int64) (*process, error) {
	p := s.pool
	p.mu.Lock()
	if s.idle != nil && s.idle.heap == heap {
		if p.risesLocked(s.idle) {
			w := p.dropIdleLocked(s)
			p.beginLocked()
			p.mu.Unlock()
			return w, nil
		}
		p.endLocked(p.dropIdleLocked(s)) // its place is as good as any in the queue
	}
	p.mu.Unlock()
	w, err := p.acquire(ctx, heap)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.beginLocked()
	p.mu.Unlock()
	return w, nil
}

// Close ends the session's runs and its worker, and returns when they have
// ended. It must not be called by a Host of this session.
func (s *Session) Close() {
	p := s.pool
	p.mu.Lock()
	s.closed = true
	delete(p.sessions, s)
	p.mu.Unlock()

	s.cancel(ErrClosed)
	s.runs.Wait()

	p.mu.Lock()
	var w *process
	if s.idle != nil {
		w = p.dropIdleLocked(s)
	}
	p.mu.Unlock()
	if w != nil {
		w.kill()
		<-w.exited
	}
}
