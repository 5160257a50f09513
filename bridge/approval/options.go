package approval

import (
	"log/slog"
	"time"
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
	// Gather is how long people are not asked after a call because further ones of its
	// script may come, if the script does not say that none will; 0 means 500 ms.
	// They are asked after six times as long in any case.
	Gather time.Duration
	// Logger gets the errors of the store that no caller can be told of; nil means
	// no log.
	Logger *slog.Logger
}

func (o Options) orDefaults() Options {
	if o.Store == nil {
		o.Store = new(Memory)
	}
	if o.Gather == 0 {
		o.Gather = gather
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
