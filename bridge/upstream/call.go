package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/stopwatch"
)

// maxQueue bounds how long a call waits for its turn under Limits.Rate. It waits
// for half of Limits.Timeout at most, so that time is left for the call itself.
const maxQueue = 30 * time.Second

// do does one job:
//
//	breaker -> session (connecting if need be) -> rate -> slot -> request
//
// The breaker is told the result.
func (s *server) do(ctx context.Context, j job) (json.RawMessage, error) {
	if len(j.args) == 0 {
		j.args = json.RawMessage("{}")
	}
	s.mu.Lock()
	now := time.Now()
	try, ok := s.breaker.admit(now)
	why := ""
	if !ok {
		why = s.breaker.why(now)
	}
	s.mu.Unlock()
	if !ok {
		return nil, &Error{Server: s.spec.Name, Tool: j.name, Kind: Unavailable, Err: &suspendedError{why}}
	}
	result, sess, v, failure := s.admitted(ctx, j)
	s.learn(v, try, sess, failure)
	if failure != nil {
		failure.Server, failure.Tool = s.spec.Name, j.name
		return nil, failure
	}
	return result, nil
}

// learn tells the breaker what a call says about the server.
func (s *server) learn(v sign, try bool, sess *session, failure *Error) {
	of, text := occasion{}, ""
	if failure != nil {
		text = failure.Err.Error()
		if sess != nil && sess.endsAll(failure.Err) {
			of.ended = sess
		}
	}
	now := time.Now()
	s.mu.Lock()
	if v == healthy {
		s.now.Answered = now
	}
	if sess == nil {
		of.tries = s.tries
	}
	if !s.breaker.report(v, try, of, text, now) {
		s.mu.Unlock()
		return
	}
	state, why := s.breaker.state(now), s.breaker.why(now)
	s.mu.Unlock()
	switch state {
	case "":
		s.log.Info("calls are sent again")
	default:
		s.log.Warn("server suspended", "why", why)
	}
	s.options.changed()
}

// admitted does a job that the breaker lets through. It returns the session that was
// used last, nil if there was none, and what the result says about the server.
func (s *server) admitted(ctx context.Context, j job) (json.RawMessage, *session, sign, *Error) {
	ctx, cancel := stopwatch.WithTimeout(ctx, s.spec.Limits.timeout(), errCallTimeout)
	defer cancel()
	queued := false
	for again := false; ; again = true { // in a new session, once
		sess, failure := s.await(ctx, j)
		if failure != nil {
			v := noSign
			if failure.Kind == Unavailable {
				v = judge(failure)
			}
			return nil, nil, v, s.timed(failure)
		}
		if !queued {
			if failure := s.queue(ctx); failure != nil {
				s.leave()
				return nil, sess, noSign, s.timed(failure)
			}
			queued = true
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			s.leave()
			kind, err := interruption(ctx)
			if kind == Timeout {
				err = fmt.Errorf("%d other calls of the server were under way all the time, as many as its concurrency allows: %w", cap(s.slots), err)
			}
			return nil, sess, noSign, s.timed(&Error{Kind: kind, Err: err})
		}
		result, unread, failure := sess.do(ctx, j)
		<-s.slots
		s.leave()
		if failure != nil && unread && !again {
			s.awaitEnd(ctx, sess)
			continue
		}
		v := judge(failure)
		if v == healthy {
			sess.useful.Store(true)
		}
		return result, sess, v, s.timed(failure)
	}
}

// timed adds to an error how long the call has waited.
func (s *server) timed(e *Error) *Error {
	if e != nil && errors.Is(e.Err, errCallTimeout) {
		e.Err = &shownError{text: strings.Replace(e.Err.Error(), errCallTimeout.Error(), fmt.Sprintf("no answer within %v", s.spec.Limits.timeout()), 1), err: e.Err}
	}
	return e
}

// queue waits until Limits.Rate allows the call, in the order in which calls came. It
// refuses at once if that would take too long.
func (s *server) queue(ctx context.Context) *Error {
	if s.limiter == nil {
		return nil
	}
	place := s.limiter.Reserve()
	wait, longest := place.Delay(), min(maxQueue, s.spec.Limits.timeout()/2)
	if wait > longest {
		place.Cancel()
		return &Error{Kind: OverRate, Err: fmt.Errorf("more calls than its rate of %v lets through; the next place is free in %v, and a call waits %v at most",
			s.spec.Limits.Rate, inSeconds(wait), longest)}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		place.Cancel()
		kind, err := interruption(ctx)
		return &Error{Kind: kind, Err: fmt.Errorf("waiting for its turn at the rate of %v: %w", s.spec.Limits.Rate, err)}
	}
}

// leave notes that a call no longer needs the session that await returned.
func (s *server) leave() {
	s.mu.Lock()
	s.use.calls--
	s.use.last = time.Now()
	s.mu.Unlock()
}

// awaitEnd waits until the server's goroutine has noticed the end of a session.
func (s *server) awaitEnd(ctx context.Context, sess *session) {
	for {
		s.mu.Lock()
		current, changed := s.session, s.changed
		s.mu.Unlock()
		if current != sess {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// await returns the session in which a job can be done, and connects if there is
// none. It waits longer for a server that is starting than for one that has already
// failed. The caller calls leave when it is done with the session.
func (s *server) await(ctx context.Context, j job) (*session, *Error) {
	var patience <-chan time.Time
	var tries, seen int
	for first := true; ; first = false {
		s.mu.Lock()
		now, sess, changed, known := s.now, s.session, s.changed, j.method || s.list.names[j.name]
		seen = s.tries
		failed := s.failed
		if sess != nil && known {
			s.use.calls++
		}
		s.mu.Unlock()
		if first {
			tries = seen
		}
		switch {
		case sess != nil && known:
			return sess, nil
		case s.life.Err() != nil:
			return nil, &Error{Kind: Unavailable, Err: context.Cause(s.life)}
		case now.State == Disabled:
			return nil, &Error{Kind: Unavailable, Err: errDisabled}
		case sess != nil && now.State == Unhealthy:
			return nil, &Error{Kind: UnknownTool, Err: fmt.Errorf("the server has listed no tool of this name, and its last listing failed: %s", now.Err)}
		case sess != nil:
			return nil, &Error{Kind: UnknownTool, Err: errors.New("the server has no tool of this name")}
		case now.State == NeedsLogin && s.spec.Auth != nil && s.spec.Auth.Ready():
			s.wakeUp(false)
		case now.State == NeedsLogin:
			return nil, &Error{Kind: Unavailable, Err: &noLoginError{now.Err}}
		case now.Login != "":
			return nil, &Error{Kind: Unavailable, Err: &noLoginError{now.Err}}
		case now.State == Parked && (now.Until.IsZero() || time.Now().Before(now.Until)):
			return nil, &Error{Kind: Unavailable, Err: &parkedError{now.Err}}
		case now.State == Failed && seen > tries:
			return nil, &Error{Kind: Unavailable, Err: fmt.Errorf("the server is not connected: %s", now.Err)}
		case now.State == Parked, now.State == Failed, now.State == Idle:
			s.wakeUp(false)
		}
		if failed > 0 && patience == nil {
			timer := time.NewTimer(reconnectPatience)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-s.life.Done():
		case <-patience:
			return nil, &Error{Kind: Unavailable, Err: fmt.Errorf("the server is not connected: %s", now.Err)}
		case <-ctx.Done():
			kind, err := interruption(ctx)
			if now.Err != "" {
				return nil, &Error{Kind: kind, Err: fmt.Errorf("%w while the server is not connected: %s", err, now.Err)}
			}
			return nil, &Error{Kind: kind, Err: fmt.Errorf("waiting for the server to start: %w", err)}
		}
	}
}
