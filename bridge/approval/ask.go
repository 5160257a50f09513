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
	if v, ok, err := qs.grants.use(ctx, r); ok || err != nil {
		return v, true, err
	}
	v, refused := qs.limiter.refuse(r, func() bool { return qs.full(r) && qs.joinable(r) == nil })
	if !refused {
		return Verdict{}, false, nil
	}
	qs.limiter.refusals[r.Run]++
	return v, true, qs.limiter.flood(r.Run)
}

// Ask puts a call to people and waits for the verdict. The request has one item.
// If the answer is already known (see [Broker.Precheck]), Ask returns it at once.
// Otherwise it waits for its turn, then at most Decision.Timeout for an answer.
// If ctx ends first, the call is withdrawn and the error is ctx's cause. Any
// other error except [ErrFlood] means that the request could not be stored; the
// verdict is then a denial.
//
// A call joins a request that nobody has seen yet if it is the same call, or was
// made at the same place in the script, and both ask for the same reasons; it
// then has the time that the request has left. An approval covers what was
// shown, so nothing joins a request that somebody may have seen.
func (b *Broker) Ask(ctx context.Context, r Request) (Verdict, error) {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	call := r.Items[0].Call
	q, v, err := b.enter(ctx, r)
	if q == nil {
		return v, err
	}
	var timeout <-chan time.Time
	for turn := q.turn; ; {
		select {
		case <-turn: // the time to answer runs from now on
			turn, timeout = nil, time.After(b.left(q))
		case <-timeout:
			if left := b.left(q); left > 0 { // the time was extended
				timeout = time.After(left)
				continue
			}
			b.expire(q)
		case <-b.news(q):
			b.sync()
		case <-q.settled:
			v := q.verdict.About(call)
			return v, b.flood(r.Run, v)
		case <-ctx.Done():
			b.withdraw(q, context.Cause(ctx))
			return withdrawn(ctx)
		}
	}
}

// enter returns the question that a call will wait for, or the verdict if there
// already is one.
func (b *Broker) enter(ctx context.Context, r Request) (*openQuestion, Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok, err := b.questions.precheck(ctx, r)
	if ok {
		return nil, v, err
	}
	q := b.questions.earlier(r)
	if q == nil {
		q = b.questions.join(r)
	}
	if q == nil {
		q = b.questions.add(r)
	}
	q.waits++
	return q, Verdict{}, nil
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

// flood returns ErrFlood if a verdict is one refusal too many for its run.
func (b *Broker) flood(run string, v Verdict) error {
	if v.Approve {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.limiter.flood(run)
}

// news returns a channel that is closed when somebody else may have settled q;
// nil as long as nobody can.
func (b *Broker) news(q *openQuestion) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !q.asked {
		return nil
	}
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

// withdraw ends one call's wait for a question; the last to leave ends the
// question, with why.
func (b *Broker) withdraw(q *openQuestion, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.waits--; q.waits == 0 && b.questions.open[q.request.ID] == q {
		b.questions.end(q, unanswered(why))
	}
	if u := q.verdict.Use; u.Grant != "" { // it was answered in the same moment
		b.questions.grants.release(u.Grant, 1)
	}
}
