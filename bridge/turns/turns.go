// Package turns lets sessions take turns at work that only needs the processor.
//
// Searches, checks of arguments against schemas, and reads of large results are short, but a
// script makes thousands of them at once, and the scheduler serves whoever asks, in the order in which
// they ask. A Queue has a few places to work, and gives a place that becomes free to the session that has waited
// longest since it last had one. So whatever others have in the queue, a session's next piece of work waits for
// those that have begun and for one of each other session.
package turns

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// A Queue hands out places to work. Its methods may be called by any number of goroutines.
type Queue struct {
	mu     sync.Mutex
	free   int              // places; none is free while somebody waits
	lines  map[string]*line // of the sessions that wait
	oldest []*line          // the same, in the order of their turns
}

// A line is what one session waits with, in order.
type line struct {
	session string
	waiting []chan struct{} // closed when its turn has come
}

// New returns a queue with so many places; 0 means one for each processor.
func New(places int) *Queue {
	if places <= 0 {
		places = runtime.GOMAXPROCS(0)
	}
	return &Queue{free: places, lines: make(map[string]*line)}
}

// Do does the work of a session when its turn has come, in this goroutine. The work must not
// wait for anything, least of all for another turn. The error is the end of ctx before
// the turn: then the work is not done.
func (q *Queue) Do(ctx context.Context, session string, work func()) error {
	turn := q.enter(session)
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			if q.leave(session, turn) {
				q.next()
			}
			return fmt.Errorf("waiting for a turn: %w", context.Cause(ctx))
		}
	}
	defer q.next()
	work()
	return nil
}

// enter takes a place, or returns what is closed when there is one.
func (q *Queue) enter(session string) (turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return nil
	}
	l := q.lines[session]
	if l == nil {
		l = &line{session: session}
		q.lines[session] = l
		q.oldest = append(q.oldest, l)
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn
}

// leave takes a turn out of its session's line. It reports whether the turn had come
// already, and its place is to be passed on.
func (q *Queue) leave(session string, turn chan struct{}) (placed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[session]; l != nil {
		for i, other := range l.waiting {
			if other == turn {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				if len(l.waiting) == 0 {
					q.drop(l)
				}
				return false
			}
		}
	}
	return true
}

// next gives a place to the session whose turn it is.
func (q *Queue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.oldest) == 0 {
		q.free++
		return
	}
	l := q.oldest[0]
	turn := l.waiting[0]
	l.waiting = l.waiting[1:]
	q.drop(l)
	if len(l.waiting) > 0 { // behind all others
		q.lines[l.session] = l
		q.oldest = append(q.oldest, l)
	}
	close(turn)
}

// drop takes a session's line out of the queue.
func (q *Queue) drop(l *line) {
	delete(q.lines, l.session)
	for i, other := range q.oldest {
		if other == l {
			q.oldest = append(q.oldest[:i], q.oldest[i+1:]...)
			return
		}
	}
}
