package approval

import (
	"context"
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// Settle answers a request, of this process or of another that shares the
// store. The digest is of the request that the person saw: a verdict about
// anything else settles nothing. Of several verdicts the first wins; the
// others are told so by a [SettledError]. Where more than one yes is needed,
// a yes that counts is no error; the entry says what is still missing.
//
// Where another process judges what counts (see relay.go), the verdict is
// brought to it: that is a [RelayedError], and [Broker.Outcome] waits for what
// becomes of it.
func (b *Broker) Settle(ctx context.Context, id string, about canon.Digest, v Verdict) (StoredRequest, error) {
	v.Time = time.Now()
	var said error // though the entry is changed
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
		if open && e.Verdict != nil { // it may have run out
			said, err = err, nil
		}
		return err
	})
	if err == nil {
		err = said
	}
	return e, err
}

// change changes an entry, with what was brought to it judged first. The store
// has it then, for every process. Whoever comes in between, such as the
// time-out, finds the verdict there and goes by it.
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

// SetModelSummary keeps what a model made of the arguments of a request, for every channel
// to show beside them and marked as a model's. It changes nothing of what is
// asked, and nothing at all once the request is settled or another one.
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
