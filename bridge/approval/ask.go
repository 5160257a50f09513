package approval

import (
	"context"
	"time"
)

// Precheck answers a call that nobody is to be asked about: a grant covers it,
// its run was refused the same call before, or its session has used up its
// questions. The second result reports whether it did; errors are those of Ask.
func (b *Broker) Precheck(ctx context.Context, r Request) (Verdict, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.precheck(ctx, r)
}

// Ask puts a call to people and waits for the verdict. The request has one
// item. Where the answer is known by then (see [Broker.Known]), Ask gives it
// at once. Otherwise it waits: for its turn, then at most Decision.Timeout for an answer.
// When ctx ends first, the call is withdrawn and the error is ctx's cause.
// Any other error but [ErrFlood] says that the question could not be kept;
// then the verdict is a denial.
//
// A call that is the same as one that nobody has seen yet, or stands at the
// same place in the script, joins that request if both are asked for the same
// reasons; it has the time that is left of it. An approval covers what was shown,
// so nothing joins a request that somebody may have seen.
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
		case <-turn: // from now on the time runs
			turn, timeout = nil, time.After(b.left(q))
		case <-timeout:
			if left := b.left(q); left > 0 { // it was extended
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

// enter returns the question that a call waits for from now on, or the verdict
// that is there already.
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

// left is how long people still have for a question.
func (b *Broker) left(q *openQuestion) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(q.request.Until)
}

// withdrawn is what Ask returns when ctx ended first.
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

// news is closed when somebody else may have settled q; nil as long as nobody
// can.
func (b *Broker) news(q *openQuestion) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !q.asked {
		return nil
	}
	return b.questions.synced
}

// sync takes over what other processes have settled, and judges what they have
// relayed.
func (b *Broker) sync() {
	for _, id := range b.look() {
		_, _ = b.judge(background(), id) // what the store fails to keep is judged after its next change
	}
}

// look takes over what others have settled, unless another call did, and
// returns the open requests with verdicts that nobody has judged.
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

// withdraw takes back one call's interest in a question; the last one to leave
// closes it, with why it did.
func (b *Broker) withdraw(q *openQuestion, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.waits--; q.waits == 0 && b.questions.open[q.request.ID] == q {
		b.questions.end(q, unanswered(why))
	}
}
