package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// Settle answers a request of this process or of another that shares the store.
// The digest is that of the request that the person saw: a verdict about anything
// else settles nothing. Of several verdicts the first wins; the others get a
// [SettledError]. If more than one approval is needed, one that counts is not an
// error; the stored request says what is still missing.
//
// If another process judges what counts (see relay.go), the verdict is relayed to
// it: that is a [RelayedError], and [Broker.Outcome] waits for what becomes of
// the verdict.
func (b *Broker) Settle(ctx context.Context, id string, about canon.Digest, v Verdict) (StoredRequest, error) {
	v.Time = time.Now()
	var said error // returned although the request changed
	e, err := b.change(ctx, id, func(e *StoredRequest) error {
		said = nil
		if !b.questions.judging.judges(e) {
			relayed, err := e.relay(about, v)
			if err == nil {
				said = &RelayedError{relayed}
			}
			return err
		}
		open := e.Verdict == nil
		err := e.answer(about, v, time.Now(), b.o.Approvers())
		if open && e.Verdict != nil { // its time may have run out
			said, err = err, nil
		}
		return err
	})
	if err == nil {
		err = said
	}
	return e, err
}

// change changes a stored request, after judging the verdicts relayed to it. The
// store then has the change for every process: anyone who comes in between, such
// as the time-out, finds the verdict there and follows it.
func (b *Broker) change(ctx context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error) {
	e, outcomes, err := b.questions.judging.update(ctx, id, change)
	if (err == nil || len(outcomes) > 0) && e.Verdict != nil {
		b.mu.Lock()
		if q := b.questions.open[id]; q != nil {
			b.questions.finish(q, *e.Verdict)
		}
		b.mu.Unlock()
	}
	b.mu.report(judged{e, outcomes})
	return e, err
}

// judge judges the verdicts relayed to a request.
func (b *Broker) judge(ctx context.Context, id string) (StoredRequest, error) {
	return b.change(ctx, id, func(*StoredRequest) error { return nil })
}

// Judge judges the verdicts relayed to the open requests that this process
// judges, including those of runs that no bridge has. A request that cannot be
// judged does not keep the others from it.
func (b *Broker) Judge(ctx context.Context) error {
	all, err := b.store.Requests(ctx, Filter{Open: time.Now()})
	errs := []error{err}
	for _, e := range all {
		if e.unjudged() && b.questions.judging.judges(&e) {
			_, err := b.judge(ctx, e.ID)
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("judging relayed verdicts: %w", err)
	}
	return nil
}

// OnJudged sets the function that hears what became of each verdict that another
// process relayed and this one judged: the error is nil if the verdict settled
// the request or counts as one of several. OnJudged is called once, before the
// broker is used; hear may block for as long as writing a record takes, and must
// not call the broker.
func (b *Broker) OnJudged(hear func(StoredRequest, Verdict, error)) { b.mu.onJudged = hear }
