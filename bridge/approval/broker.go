package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/profiles"
)

// A Broker holds the requests of one process's runs and waits for their
// verdicts. The requests that it puts to people are in its store, where any
// channel of any process can answer them. Its methods may be called
// concurrently. It starts no goroutine that outlives a call.
//
// A call goes through ask.go and a verdict through settle.go; in between, the open
// requests are in questions.go. What the store has of a request, and how a verdict
// changes that, is in stored_request.go.
type Broker struct {
	o     Options
	store Store

	// mu is held while the store puts, joins and ends this process's requests:
	// what is open here and what the store has must change together, in one
	// order, or a call could join a request that others see without it. The price
	// is that each asking call of this process waits for the others' writes; a
	// person takes a thousand times as long. Verdicts, which come from outside,
	// are written and reported without it.
	mu        reporter
	questions questions // guarded by mu
}

// New makes a broker.
func New(o Options) *Broker {
	o = o.orDefaults()
	b := &Broker{o: o, store: o.Store, mu: reporter{onJudged: func(StoredRequest, Verdict, error) {}}}
	b.questions = newQuestions(&b.o, b.mu.reportLater)
	return b
}

// NeedsApprover reports whether only somebody who proves who they are may
// approve a call with that decision.
func (b *Broker) NeedsApprover(d profiles.Decision) bool {
	return Request{Decision: d, Separate: b.o.Separate()}.NeedsApprover()
}

// EndRun forgets a run, all of whose calls have been answered or are returning.
// Requests that it still has open are withdrawn.
func (b *Broker) EndRun(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions.unask(unanswered(nil), func(w *waitingCall) bool { return w.request.Run == run })
	for _, q := range b.questions.open {
		if q.request.Run == run {
			b.questions.end(q, unanswered(nil))
		}
	}
	b.questions.forgetRun(run)
	delete(b.questions.plans, run)
	if err := b.questions.grants.endRun(run); err != nil { // nobody makes calls of it any more
		b.o.Logger.Warn("the grants of a run that has ended stay until they expire", "run", run, "err", err)
	}
}

// EndSession forgets a session, its grants included. Its runs have ended.
func (b *Broker) EndSession(session string) error {
	b.mu.Lock()
	delete(b.questions.limiter.asked, session)
	delete(b.questions.limiter.lists, session)
	b.mu.Unlock()
	err := b.store.DropGrants(background(), func(g Grant) bool { return g.Key.Session == session })
	if err != nil {
		return fmt.Errorf("dropping the grants of a session: %w", err)
	}
	return nil
}

// Grants returns the grants that hold at this moment, of every process that
// shares the store, the oldest first.
func (b *Broker) Grants(ctx context.Context) ([]Grant, error) { return b.questions.grants.valid(ctx) }

// Revoke ends a grant. It reports whether there was one with that id.
func (b *Broker) Revoke(ctx context.Context, id string) (bool, error) {
	found := false
	err := b.store.DropGrants(ctx, func(g Grant) bool {
		found = found || g.ID == id
		return g.ID == id
	})
	return found, err
}

// Prune deletes requests that ended before a time, and grants that have expired.
func (b *Broker) Prune(ctx context.Context, before time.Time) error {
	now := time.Now()
	over := func(g Grant) bool { return !now.Before(g.Until) || b.questions.grants.orphaned(g) }
	return errors.Join(b.store.Forget(ctx, before), b.store.DropGrants(ctx, over))
}
