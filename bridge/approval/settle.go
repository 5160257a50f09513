package approval

import (
	"context"
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
			brought, err := e.relay(about, v)
			if err == nil {
				said = &RelayedError{brought}
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

// SetModelSummary stores the model summary of a request's arguments, which every
// channel shows next to them, marked as a model's. It does not change what is
// asked, and does nothing once the request is settled or has changed.
func (b *Broker) SetModelSummary(ctx context.Context, id string, about canon.Digest, says string) error {
	_, err := b.store.Update(ctx, id, func(e *StoredRequest) error {
		switch {
		case e.Verdict != nil:
			return &SettledError{*e.Verdict}
		case e.Digest() != about:
			return ErrDigest
		}
		e.Says = says
		return nil
	})
	if err != nil {
		return fmt.Errorf("keeping what a model says of request %s: %w", id, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.questions.open[id]; q != nil {
		q.request.Says = says
	}
	return nil
}
