package handles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Shared is where bridges with the same store keep what handles of principals stand for.
// Whatever a principal's own bridge keeps in memory, the others find there, for that
// principal alone. Its methods may be called by any number of goroutines.
type Shared interface {
	// KeepHandle keeps what a principal's handle stands for, and drops the oldest of that
	// principal that are over a number of bytes in all.
	KeepHandle(ctx context.Context, principal string, k Kept, lives time.Duration, most int64) error
	// Handle returns what a principal's handle stands for, and how long it lives still. The
	// error is ErrNoHandle if there is none of theirs.
	Handle(ctx context.Context, principal, id string) (Kept, time.Duration, error)
}

// SharedBy returns what the bridges of one configuration share, of a store that several may have: a
// principal of another one is somebody else, whatever their name. Nil stays nil.
func SharedBy(configuration string, all Shared) Shared {
	if all == nil {
		return nil
	}
	return sharedBy{all, configuration}
}

type sharedBy struct {
	all           Shared
	configuration string
}

func (s sharedBy) KeepHandle(ctx context.Context, principal string, k Kept, lives time.Duration, most int64) error {
	return s.all.KeepHandle(ctx, s.of(principal), k, lives, most)
}

func (s sharedBy) Handle(ctx context.Context, principal, id string) (Kept, time.Duration, error) {
	return s.all.Handle(ctx, s.of(principal), id)
}

func (s sharedBy) of(principal string) string { return s.configuration + "\n" + principal }

// ErrNoHandle is a handle that a principal has not, or not any more.
var ErrNoHandle = errors.New("there is no such handle")

// sharedPatience is how long a script, or an answer, waits for the shared store.
const sharedPatience = 5 * time.Second

// Publish has other bridges find what the handles in an answer stand for, if the store is a
// principal's and shared. Nobody knows a handle before an answer has it.
func (s *Store) Publish(answer []byte) error {
	if s.shared == nil {
		return nil
	}
	s.mu.Lock()
	var fresh []*stored
	for _, it := range s.items {
		if !it.published && it.run == "" && bytes.Contains(answer, []byte(it.ID)) {
			it.published = true
			fresh = append(fresh, it)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, it := range fresh {
		ctx, cancel := context.WithTimeout(context.Background(), sharedPatience)
		if err := s.shared.KeepHandle(ctx, s.principal, it.Kept, it.expires.Sub(s.now()), maxBytes); err != nil {
			errs = append(errs, fmt.Errorf("keeping what handle %s stands for, which this bridge alone has now: %w", it.ID, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// fetch looks for an item that another bridge has published.
func (s *Store) fetch(id string) (*stored, error) {
	if s.shared == nil {
		return nil, ErrNoHandle
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedPatience)
	defer cancel()
	k, lives, err := s.shared.Handle(ctx, s.principal, id)
	if err != nil {
		return nil, err
	}
	one := &stored{Kept: k, expires: s.now().Add(lives), published: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, one)
	s.bytes += one.size()
	s.dropLocked(1)
	return one, nil
}
