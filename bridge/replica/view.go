package replica

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Replica is one of the bridges that share a store. Its times are by the store's clock.
type Replica struct {
	Name    string    `json:"name"`
	Machine string    `json:"machine"`
	Version string    `json:"version"`
	Address string    `json:"address,omitempty"` // where it serves clients; empty for nowhere
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`          // it is alive until then, unless it renews that
	Gone    bool      `json:"gone,omitempty"` // it did not, and has ended
}

// Line describes a replica to people, on one line.
func (r Replica) Line() string {
	line := fmt.Sprintf("%s on %s, version %s, since %s", r.Name, r.Machine, r.Version, r.Since.Local().Format(time.DateTime))
	if r.Address != "" {
		line += ", serves " + r.Address
	}
	if r.Gone {
		return line + ": ended without a word, was alive until " + r.Until.Local().Format(time.TimeOnly)
	}
	return line + ": alive until " + r.Until.Local().Format(time.TimeOnly) + " by the database's clock"
}

// A Table is where the bridges that share a store know of each other. Only the store's
// own clock decides who is alive. Its methods may be called concurrently.
type Table interface {
	// Renew makes a replica alive until the store's clock is a term further on. It lapsed
	// if it was not alive until now: others may have acquired what it had.
	Renew(ctx context.Context, me Replica, term time.Duration) (lapsed bool, err error)
	// Leave removes a replica: it has ended.
	Leave(ctx context.Context, name string) error
	// List returns all replicas, those that have ended of late as well, the oldest first.
	List(ctx context.Context) ([]Replica, error)
	Close() error
}

const (
	fresh    = time.Second     // how old is what is known of others, about
	stale    = 3 * time.Second // how old it may be
	patience = 2 * time.Second // with the store
	most     = 10_000          // names that are remembered to be in no table
)

// A View knows which replicas are alive, as of about a second ago.
type View struct {
	table Table
	now   func() time.Duration

	mu    sync.Mutex
	began time.Duration // when the list was asked for; negative: there is none
	tried time.Duration // when one was last asked for
	seen  map[string]Replica
	asked map[string]time.Duration // when a name that is in no list was first asked about
}

// NewView makes a view of a table.
func NewView(t Table) *View { return newView(t, elapsed) }

func newView(t Table, now func() time.Duration) *View {
	return &View{table: t, now: now, began: -1, tried: -2 * fresh, asked: make(map[string]time.Duration)}
}

// A State is what a view knows of a replica.
type State int

const (
	Unknown  State = iota // the store did not say lately: it counts as alive
	Alive                 // or nobody can tell that it is not
	Ended                 // it was not alive a moment ago
	Unlisted              // it never joined, or ended long ago
)

// State returns what is known of a replica.
func (v *View) State(name string) State {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now()-v.tried >= fresh {
		v.lookLocked()
	}
	one, listed := v.seen[name]
	first, before := v.asked[name]
	if !listed && !before {
		if len(v.asked) >= most {
			clear(v.asked)
		}
		first = v.now()
		v.asked[name] = first
		v.lookLocked() // it may have joined since
		one, listed = v.seen[name]
	}
	switch {
	case v.began < 0 || v.now()-v.began > stale:
		return Unknown
	case listed && one.Gone:
		return Ended
	case listed:
		return Alive
	case v.began < first:
		return Unknown
	default:
		return Unlisted
	}
}

// List returns the replicas as they are now.
func (v *View) List(ctx context.Context) ([]Replica, error) { return v.table.List(ctx) }

// look brings the view up to date, and returns it.
func (v *View) look() map[string]Replica {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lookLocked()
	return v.seen
}

func (v *View) lookLocked() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := v.now()
	v.tried = began
	all, err := v.table.List(ctx)
	if err != nil {
		return
	}
	v.began, v.seen = began, make(map[string]Replica, len(all))
	for _, one := range all {
		v.seen[one.Name] = one
	}
}
