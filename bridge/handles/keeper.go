package handles

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// A Keeper has one store for each principal: what a script of theirs leaves behind, a script in another
// session of theirs reads, and nobody else does. Its methods may be called by any number of
// goroutines.
type Keeper struct {
	now    func() time.Time
	shared Shared // nil: they are in memory only

	mu     sync.Mutex
	stores map[string]*Store // by principal; they stay, and are small once they are empty
	swept  time.Time
}

// NewKeeper makes a Keeper without stores. Unless shared is nil, other bridges find there
// what answers name.
func NewKeeper(now func() time.Time, shared Shared) *Keeper {
	return &Keeper{now: now, shared: shared, stores: map[string]*Store{}}
}

// Of returns the store of a principal. Without a name it is a new one, which nobody else has.
func (k *Keeper) Of(principal string) *Store {
	if principal == "" {
		return New(k.now)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.swept) > lifetime/10 {
		k.swept = now
		for _, s := range k.stores {
			s.sweep()
		}
	}
	s := k.stores[principal]
	if s == nil {
		s = New(k.now)
		s.shared, s.principal = k.shared, principal
		s.salt = "_" + strings.ToLower(rand.Text()[:6])
		k.stores[principal] = s
	}
	return s
}

// sweep drops what has expired.
func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(0)
}
