package bridge

import (
	"slices"
	"sync"
)

// A floor says whose questions are before the person at one session: ours, of
// any number of runs, or one of an upstream server. Never both, so that none
// can be taken for the other.
type floor struct {
	mu      sync.Mutex
	ours    map[*run]int // open questions of ours, by run
	dialogs int          // of ours that are open at the client, also when nobody holds their run
	waiting []*foreign   // a server's, the oldest first; the one before the person included
	put     *foreign     // that one
	changed chan struct{}
}

func newFloor() *floor { return &floor{ours: map[*run]int{}, changed: make(chan struct{})} }

// watch returns a channel that is closed at the next change.
func (f *floor) watch() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *floor) turnLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// mayAsk notes how many questions of ours a run has open and reports whether
// they may be put now.
func (f *floor) mayAsk(r *run, open int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ours[r] != open {
		if f.ours[r] = open; open == 0 {
			delete(f.ours, r)
		}
		f.turnLocked()
	}
	return f.put == nil
}

// dialog notes that so many more questions of ours are open at the client.
func (f *floor) dialog(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dialogs += more; more < 0 {
		f.turnLocked()
	}
}

// maxForeign bounds the questions of servers that wait in one session.
const maxForeign = 8

// queue adds a server's question, unless there are too many.
func (f *floor) queue(q *foreign) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) >= maxForeign {
		return false
	}
	f.waiting = append(f.waiting, q)
	f.turnLocked()
	return true
}

// take gives the floor to the oldest question that servers have for a run, nil if
// there is none or the floor is taken.
func (f *floor) take(r *run) *foreign {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.put != nil || len(f.ours) > 0 || f.dialogs > 0 {
		return nil
	}
	for _, q := range f.waiting {
		if q.run == r {
			f.put = q
			return q
		}
	}
	return nil
}

// find returns the question of a run that has this id, nil if it is over.
func (f *floor) find(r *run, id string) *foreign {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.waiting {
		if q.run == r && q.id == id {
			return q
		}
	}
	return nil
}

// giveBack takes the floor from a question that was not answered; it waits on.
func (f *floor) giveBack(q *foreign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.put == q {
		f.put = nil
		f.turnLocked()
	}
}

// remove ends a question, wherever it is.
func (f *floor) remove(q *foreign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.put == q {
		f.put = nil
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(other *foreign) bool { return other == q })
	f.turnLocked()
}

// forget ends what a run has on the floor.
func (f *floor) forget(r *run) { f.mayAsk(r, 0) }
