// Package turns lets sessions take turns at what they share: the processor, and the store.
//
// Searches, checks of arguments against schemas, and reads of large results are short, but a
// script makes thousands of them at once, and the scheduler serves whoever asks, in the order in which
// they ask. A Queue has a few places to work, and gives a place that becomes free to the session that
// has had the least of the processor. So whatever others have in the queue, a session's next piece of work waits for
// those that have begun and for one of each other session. A Line is the order alone, for what is not done in a
// goroutine of the session's own.
package turns

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// least is what a piece of work counts at least.
const least = 20 * time.Microsecond

// A Queue hands out places to work. Its methods may be called by any number of goroutines.
type Queue struct {
	mu   sync.Mutex
	free int                 // places; none is free while somebody waits
	line Line[chan struct{}] // closed when the turn has come; counted in nanoseconds of work
}

// New returns a queue with so many places.
func New(places int) *Queue { return &Queue{free: max(1, places)} }

// Processors has Go run as many goroutines at once as twice the processors that the program
// has, unless GOMAXPROCS says how many, and returns how many places a queue for
// work on them should have: half of them. Only the first call changes anything.
//
// Where there is more to do than there are processors, Go looks for what has arrived on pipes
// and sockets only when it has nothing else to run, or every 10 ms, which a session beside a busy one waits
// for at each of its messages. With threads to spare one always looks, and the
// system decides who has the processor, by who has had least.
func Processors() (places int) { return processors() }

var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * n)
	}
	return (n + 1) / 2
})

// Do does the work of a session when its turn has come, in this goroutine. The work must not
// wait for anything, least of all for another turn. The error is the end of ctx before
// the turn: then the work is not done.
func (q *Queue) Do(ctx context.Context, session string, work func()) error {
	if err := q.enter(ctx, session); err != nil {
		return err
	}
	began := time.Now()
	defer func() { q.leave(session, time.Since(began)) }()
	work()
	return nil
}

// enter waits for a place.
func (q *Queue) enter(ctx context.Context, session string) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.line.Serve(session, int64(least))
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.line.Add(session, turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.line.Remove(session, func(other chan struct{}) bool { return other == turn }) {
		q.next() // the turn had come already
	}
	return fmt.Errorf("waiting for a turn: %w", context.Cause(ctx))
}

// leave gives a place back, which the session has had for so long.
func (q *Queue) leave(session string, had time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line.Charge(session, int64(max(0, had-least)))
	q.next()
}

// next gives a place to the session whose turn it is. The caller holds Queue.mu.
func (q *Queue) next() {
	session, turn, ok := q.line.Peek()
	if !ok {
		q.free++
		return
	}
	q.line.Take(session, int64(least))
	close(turn)
}
