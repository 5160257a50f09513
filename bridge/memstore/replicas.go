package memstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/replica"
)

// Replicas is a replica.Table in memory, with a clock of its own. Broken, unless nil, is
// the error of whatever is asked of it.
type Replicas struct {
	Clock func() time.Time

	mu     sync.Mutex
	broken error
	all    map[string]replica.Replica
}

// Break has every method fail with err; nil has them work again.
func (r *Replicas) Break(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

// Renew makes a replica alive for some time from now. See replica.Table.
func (r *Replicas) Renew(_ context.Context, me replica.Replica, term time.Duration) (lapsed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return false, r.broken
	}
	if r.all == nil {
		r.all = make(map[string]replica.Replica)
	}
	now := r.Clock()
	was, there := r.all[me.Name]
	me.Since, me.Until = now, now.Add(term)
	if there {
		me.Since = was.Since
	}
	r.all[me.Name] = me
	return !there || !was.Until.After(now), nil
}

// Leave removes a replica.
func (r *Replicas) Leave(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, name)
	return r.broken
}

// List returns all replicas.
func (r *Replicas) List(context.Context) ([]replica.Replica, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return nil, r.broken
	}
	all := slices.Collect(maps.Values(r.all))
	for i := range all {
		all[i].Gone = !all[i].Until.After(r.Clock())
	}
	slices.SortFunc(all, func(a, b replica.Replica) int {
		if order := a.Since.Compare(b.Since); order != 0 {
			return order
		}
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	return all, nil
}

// Close does nothing.
func (*Replicas) Close() error { return nil }
