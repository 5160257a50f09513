package approval

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"codemode-bridge/profiles"
)

// Options are what a broker works with. The zero value is good for one
// process whose questions end with it.
type Options struct {
	Limits Limits
	Store  Store  // nil means a Memory of its own
	Bridge string // names this process in the requests of a shared store
	// Configuration is the id of the configuration whose calls this process asks
	// about, and whose approvers Approvers are.
	Configuration string
	// Gone reports whether the process of a name has ended; nil means that none
	// ever has.
	Gone func(bridge string) bool
	// Separate reports whether a requester's own approval counts for nothing; nil
	// means that it counts.
	Separate func() bool
	// Approvers are those of this moment: a verdict counts if its author is one
	// of them and may give it, and of several approvals each as long as that is so.
	// Where it is nil, or returns nil, verdicts stand as they were signed in this
	// process, and none that another process relays counts.
	Approvers func() *Approvers
	// Summarise, if not nil, writes the one line about a request that lists
	// and dialogs show in place of [Summary]. It sees what people may see.
	Summarise func(Request) string
	// Asked, if not nil, hears of each request when it is put to people. It
	// must neither block nor call the broker.
	Asked func(Request)
	// Logger hears what a store failed to keep where no caller can be told; nil
	// means none.
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

// background is the context of writes that belong to no one call: a call that is
// cancelled meanwhile must not leave the store behind what is open here.
func background() context.Context { return context.Background() }

// A Broker holds what the runs of one process ask, and waits for the
// verdicts. What it puts to people is in its store, where any channel of
// any process answers it. Its methods may be called by any number of
// goroutines. It starts none that outlive a call.
//
// A call goes through ask.go, the requests that are open through questions.go,
// and a verdict through settle.go.
type Broker struct {
	o     Options
	store Store

	// mu is held while the store puts, joins and ends what this process asks:
	// what is open here and what the store has must change together, in one
	// order, or a call could join a question that others see without it. It
	// costs the other calls that ask, in this process alone, a write each; a
	// person takes a thousand times as long. Verdicts, which come from outside,
	// are written without it, and reported without it.
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

// NeedsApprover reports that only somebody who proves who they are may approve
// a call that was decided so.
func (b *Broker) NeedsApprover(d profiles.Decision) bool {
	return Request{Decision: d, Separate: b.o.Separate()}.NeedsApprover()
}

// EndRun forgets a run, whose calls have all been answered or are on their way
// back. What it still asks is withdrawn.
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

// Prune forgets requests that ended before a time, and grants that are over.
func (b *Broker) Prune(ctx context.Context, before time.Time) error {
	now := time.Now()
	over := func(g Grant) bool { return !now.Before(g.Until) || b.questions.grants.orphaned(g) }
	return errors.Join(b.store.Forget(ctx, before), b.store.DropGrants(ctx, over))
}
