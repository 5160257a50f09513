package approval

import (
	"context"
	"fmt"
	"slices"

	"codemode-bridge/bridge/canon"
)

// Take returns, in the order of their calls, the requests of a run that have been
// put to people. They are about to be shown, so nothing joins them from now on.
func (b *Broker) Take(run string) []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Request
	for _, q := range b.questions.open {
		if q.request.Run == run {
			q.seen = true
			r := q.request
			r.Items = slices.Clone(r.Items)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Request) int { return x.Items[0].Call - y.Items[0].Call })
	return all
}

// Waiting reports how many calls of a run wait for a person, whether put to
// people or not.
func (b *Broker) Waiting(run string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.waiting(run)
}

// Counts are the numbers of unsettled requests of this process's runs.
type Counts struct {
	Open   int `json:"open"`   // put to people
	Queued int `json:"queued"` // calls that wait for their turn
}

// Counts counts a session's requests; the empty name means all sessions.
func (b *Broker) Counts(session string) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	var c Counts
	for _, q := range b.questions.open {
		if session == "" || q.request.session() == session {
			c.Open++
		}
	}
	for _, w := range b.questions.queue {
		if session == "" || w.request.session() == session {
			c.Queued++
		}
	}
	return c
}

// Requests returns requests of every process that shares the store.
func (b *Broker) Requests(ctx context.Context, f Filter) ([]StoredRequest, error) {
	return b.store.Requests(ctx, f)
}

// Changed is closed after the next change of a request or grant by anyone.
func (b *Broker) Changed() <-chan struct{} { return b.store.Changed() }

// Watch returns a channel that gets a value when a run's requests change. The
// second result ends it.
func (b *Broker) Watch(run string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions.watchers[run] = append(b.questions.watchers[run], c)
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.questions.watchers[run] = slices.DeleteFunc(b.questions.watchers[run], func(w chan struct{}) bool { return w == c })
		if len(b.questions.watchers[run]) == 0 {
			delete(b.questions.watchers, run)
		}
	}
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
