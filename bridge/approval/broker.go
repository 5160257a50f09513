package approval

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"codemode-bridge/profiles"
)

// Options configure a broker. The zero value suits one process whose requests
// end with it.
type Options struct {
	Limits Limits
	Store  Store  // nil means a Memory of its own
	Bridge string // names this process in the requests of a shared store
	// Configuration is the id of this process's configuration: the one whose calls
	// it asks about and to which Approvers belong.
	Configuration string
	// Gone reports whether the process with that name has ended; nil means that
	// none ever has.
	Gone func(bridge string) bool
	// Separate reports whether a requester's own approval counts for nothing; nil
	// means that it counts.
	Separate func() bool
	// Approvers returns the current approvers: a verdict counts if its author is
	// one of them and may give it, and each of several approvals counts for as long
	// as that is so. If it is nil, or returns nil, verdicts stand as they were
	// signed in this process, and none that another process relays counts.
	Approvers func() *Approvers
	// Summarise, if not nil, writes the one line about a request that lists
	// and dialogs show in place of [Summary]. It sees what people may see.
	Summarise func(Request) string
	// Asked, if not nil, hears of each request when it is put to people. It
	// must neither block nor call the broker.
	Asked func(Request)
	// Logger gets the errors of the store that no caller can be told of; nil means
	// no log.
	Logger *slog.Logger
}

func (o Options) orDefaults() Options {
	if o.Store == nil {
		o.Store = new(Memory)
	}
	if o.Separate == nil {
		o.Separate = func() bool { return false }
	}
	if o.Approvers == nil {
		o.Approvers = func() *Approvers { return nil }
	}
	if o.Asked == nil {
		o.Asked = func(Request) {}
	}
	if o.Gone == nil {
		o.Gone = func(string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// background is the context of writes that belong to no single call: a call that
// is cancelled meanwhile must not let the store fall behind what is open here.
func background() context.Context { return context.Background() }

// A Broker holds the requests of one process's runs and waits for their
// verdicts. The requests that it puts to people are in its store, where any
// channel of any process can answer them. Its methods may be called
// concurrently. It starts no goroutine that outlives a call.
//
// A call goes through ask.go, the requests that are open through questions.go,
// and a verdict through settle.go.
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
	for _, q := range b.questions.open {
		if q.request.Run == run {
			b.questions.end(q, unanswered(nil))
		}
	}
	b.questions.forgetRun(run)
}

// Prune deletes requests that ended before a time, and grants that have expired.
func (b *Broker) Prune(ctx context.Context, before time.Time) error {
	now := time.Now()
	over := func(g Grant) bool { return !now.Before(g.Until) || b.questions.grants.orphaned(g) }
	return errors.Join(b.store.Forget(ctx, before), b.store.DropGrants(ctx, over))
}
