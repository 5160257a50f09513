package lifecycle

import (
	"context"
	"slices"
	"sync"
)

// Slots bound how many calls of a run are under way at servers. The worker's bound
// on parallel calls does that as long as no call waits for a person: those that waited
// together go on together. The zero value is ready.
type Slots struct {
	mu      sync.Mutex
	taken   int
	waiting []*slot // by the number of the call
}

type slot struct {
	call  int
	ready chan struct{} // closed when the call has its place
}

// Enter waits until a call may be under way besides at most most-1 others, or ctx ends.
// Either way it has a place then, which Leave gives back.
func (s *Slots) Enter(ctx context.Context, call, most int) {
	s.mu.Lock()
	if s.taken < most || most <= 0 {
		s.taken++
		s.mu.Unlock()
		return
	}
	mine := &slot{call, make(chan struct{})}
	at, _ := slices.BinarySearchFunc(s.waiting, call, func(w *slot, call int) int { return w.call - call })
	s.waiting = slices.Insert(s.waiting, at, mine)
	s.mu.Unlock()
	select {
	case <-mine.ready:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.waiting, mine); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			s.taken++
		}
	}
}

// Leave gives a place to the next call.
func (s *Slots) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.taken--
		return
	}
	close(s.waiting[0].ready)
	s.waiting = s.waiting[1:]
}
