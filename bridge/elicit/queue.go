package elicit

import (
	"slices"
	"sync"
)

// A Queue is the prompt queue of one session: it says whose questions are before
// the person there. Those are the bridge's own, of any number of runs, or one of
// an upstream server; never both, so that neither can be taken for the other. Its
// methods may be called by any number of goroutines.
type Queue struct {
	mu      sync.Mutex
	own     map[string]int // open questions of the bridge, by run
	dialogs int            // of those, open at the client, even when nobody is attached to their run
	waiting []*Request     // the oldest first; the one before the person included
	shown   *Request       // that one
	changed chan struct{}
}

// NewQueue makes an empty queue.
func NewQueue() *Queue { return &Queue{own: map[string]int{}, changed: make(chan struct{})} }

// Changed returns a channel that is closed at the next change.
func (q *Queue) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

func (q *Queue) changeLocked() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// MayAsk notes how many questions of the bridge a run has open and reports
// whether they may be put now.
func (q *Queue) MayAsk(run string, open int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.own[run] != open {
		if q.own[run] = open; open == 0 {
			delete(q.own, run)
		}
		q.changeLocked()
	}
	return q.shown == nil
}

// Forget notes that a run has no questions of the bridge open any more.
func (q *Queue) Forget(run string) { q.MayAsk(run, 0) }

// AddDialogs notes that n more questions of the bridge are open at the client; of
// a negative n, that so many were closed.
func (q *Queue) AddDialogs(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dialogs += n; n < 0 {
		q.changeLocked()
	}
}

// maxWaiting bounds the server requests that wait in one session.
const maxWaiting = 8

// add queues a request and reports whether there was room for it.
func (q *Queue) add(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaiting {
		return false
	}
	q.waiting = append(q.waiting, r)
	q.changeLocked()
	return true
}

// Take returns the oldest server request of a run, to be put to the person; nil
// if there is none or something else is before the person. Nothing else will be
// until it is resolved or released.
func (q *Queue) Take(run string) *Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shown != nil || len(q.own) > 0 || q.dialogs > 0 {
		return nil
	}
	for _, r := range q.waiting {
		if r.run == run {
			q.shown = r
			return r
		}
	}
	return nil
}

// Find returns the request of a run that has this id, nil if it is over.
func (q *Queue) Find(run string, id string) *Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.waiting {
		if r.run == run && r.id == id {
			return r
		}
	}
	return nil
}

// Release notes that a request is no longer before the person. Unless it was
// resolved, it waits for whoever attaches to its run next.
func (q *Queue) Release(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shown == r {
		q.shown = nil
		q.changeLocked()
	}
}

// remove ends a request, whether it waits or is before the person.
func (q *Queue) remove(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shown == r {
		q.shown = nil
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other *Request) bool { return other == r })
	q.changeLocked()
}
