package approval

import (
	"context"
	"time"
)

// Precheck answers a call that nobody needs to be asked about: a grant covers it,
// its run was already refused the same call, or its session has used up its
// questions. The second result reports whether it did; errors are those of Ask.
func (b *Broker) Precheck(ctx context.Context, r Request) (Verdict, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.precheck(ctx, r)
}

// precheck answers a call that nobody needs to be asked about; see
// [Broker.Precheck].
func (qs *questions) precheck(ctx context.Context, r Request) (Verdict, bool, error) {
	if r.Again {
		switch q, v, err := qs.resume(ctx, r); {
		case err != nil:
			return Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()}, true, err
		case v != nil:
			return *v, true, nil
		case q != nil:
			return Verdict{}, false, nil
		}
	}
	if v, said := qs.limiter.denial(r); said {
		return v, true, qs.refuseUnasked(r.Run)
	}
	if p := qs.plans[r.Run]; p != nil && qs.open[p.question.request.ID] != p.question {
		switch _, _, v, ok := qs.claim(r); {
		case ok && v.Approve:
			return v, true, nil
		case ok:
			return v, true, qs.refuseUnasked(r.Run)
		}
	}
	if v, ok, err := qs.grants.use(ctx, r); ok || err != nil {
		return v, true, err
	}
	if v, ok, err := qs.crowded(ctx, r); err != nil {
		return v, true, err
	} else if ok {
		return v, true, qs.refuseUnasked(r.Run)
	}
	v, refused := qs.limiter.refuse(r, func() bool { return qs.full(r) && qs.joinable(r) == nil })
	if !refused {
		return Verdict{}, false, nil
	}
	return v, true, qs.refuseUnasked(r.Run)
}

// Ask puts a call to people and waits for the verdict. The request has one item.
// If the answer is already known (see [Broker.Precheck]), Ask returns it at once.
// Otherwise it waits for the calls that its script makes together with it (see
// Request.Idle) and for its turn, then at most Decision.Timeout for an answer.
// If ctx ends first, the call is withdrawn and the error is ctx's cause. Any
// other error except [ErrFlood] means that the request could not be stored; the
// verdict is then a denial.
//
// Calls of one run that wait together make one request, in the order in which they
// were made, up to a bound; see [Request.takes]. A further call joins a request that
// nobody has seen yet, and then has the time that the request has left. An approval
// covers what was shown, so nothing joins a request that somebody may have seen.
func (b *Broker) Ask(ctx context.Context, r Request) (Verdict, error) {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	w, v, err := b.enter(ctx, r)
	if w == nil {
		return v, err
	}
	if !b.awaitTurn(ctx, w, r.Idle) {
		b.leave(w, context.Cause(ctx))
		return withdrawn(ctx)
	}
	q := w.question
	for timeout := time.After(b.left(q)); ; {
		select {
		case <-timeout:
			if left := b.left(q); left > 0 { // the time was extended
				timeout = time.After(left)
				continue
			}
			b.expire(q)
		case <-b.news():
			b.sync()
		case <-q.settled:
			return b.answer(r, q, w.row)
		case <-ctx.Done():
			b.leave(w, context.Cause(ctx))
			return withdrawn(ctx)
		}
	}
}

// enter has a call wait for people, or returns the verdict if there already is one.
func (b *Broker) enter(ctx context.Context, r Request) (*waitingCall, Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok, err := b.questions.precheck(ctx, r)
	if ok {
		return nil, v, err
	}
	r.Idle = nil // a store keeps the rest
	return b.questions.wait(r), Verdict{}, nil
}

// awaitTurn waits until a call belongs to a question, and reports whether it does
// before ctx ends.
func (b *Broker) awaitTurn(ctx context.Context, w *waitingCall, idle func() (int, <-chan struct{})) bool {
	for {
		calls, moves := -1, (<-chan struct{})(nil)
		if idle != nil {
			calls, moves = idle()
		}
		b.mu.Lock()
		left := b.questions.gathered(w, calls)
		b.mu.Unlock()
		var further <-chan time.Time
		if left > 0 {
			further = time.After(left)
		} else {
			moves = nil
		}
		select {
		case <-w.turn:
			return true
		case <-moves:
		case <-further:
		case <-ctx.Done():
			return false
		}
	}
}

// left returns how long people still have to answer a question.
func (b *Broker) left(q *openQuestion) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(q.request.Until)
}

// withdrawn returns what Ask returns if ctx ends first.
func withdrawn(ctx context.Context) (Verdict, error) {
	return unanswered(context.Cause(ctx)), context.Cause(ctx)
}

// answer returns what the verdict on a question means for a call, its row of that number: a no if the same was refused as
// planned while people were asked about the call. The error is ErrFlood if that is one
// refusal too many for the run.
func (b *Broker) answer(r Request, q *openQuestion, row int) (Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := q.request.answers(q.verdict, row)
	if no, refused := b.questions.refusedPlan(r.Run, r.Items[0].Key); v.Approve && refused {
		if v.Use.Grant != "" {
			b.questions.grants.release(v.Use.Grant, 1)
		}
		v = no
	}
	if v.Approve {
		return v, nil
	}
	return v, b.questions.limiter.flood(r.Run)
}

// news returns a channel that is closed when somebody else may have settled a
// question.
func (b *Broker) news() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.synced
}

// sync picks up what other processes have settled, and judges the verdicts that
// they have relayed.
func (b *Broker) sync() {
	for _, id := range b.look() {
		_, _ = b.judge(background(), id) // if the store fails, it is judged after the store's next change
	}
}

// look picks up what others have settled, unless another call already has, and
// returns the open requests that have unjudged verdicts.
func (b *Broker) look() (unjudged []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.questions.synced:
		return b.questions.sync()
	default:
		return nil
	}
}

// expire denies a request because nobody answered in time.
func (b *Broker) expire(q *openQuestion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.questions.open[q.request.ID] == q {
		b.questions.end(q, Verdict{Reason: Timeout, Channel: "timeout"})
	}
}

// leave ends one call's wait; the last to leave a question ends it, with why.
func (b *Broker) leave(w *waitingCall, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := w.question
	if q == nil {
		b.questions.unask(unanswered(why), func(other *waitingCall) bool { return other == w })
		return
	}
	if q.waits--; q.waits == 0 && b.questions.open[q.request.ID] == q {
		b.questions.end(q, unanswered(why))
	}
	if u := q.verdict.Use; u.Grant != "" { // it was answered in the same moment
		b.questions.grants.release(u.Grant, 1)
	}
}
