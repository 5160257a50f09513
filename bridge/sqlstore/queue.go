package sqlstore

import (
	"math"
	"runtime"
	"sync"
	"time"

	"codemode-bridge/bridge/turns"
)

const (
	batchBytes = 8 << 20 // bytes of records in one transaction, about
	batchRows  = 64      // rows in one transaction if several sessions write, unless one item has more

	sharedFor = time.Minute // how long a session that has written something counts
)

// A queue holds the items that wait to be written, in the order in which their sessions
// take turns: one that has written little is in the next transaction, whatever others have
// in the queue. Whoever adds an item waits for it, so their number needs no other bound.
type queue struct {
	arrived chan struct{} // has a token while anything waits

	mu      sync.Mutex
	line    turns.Line[*item] // counted in rows
	session string            // that wrote last
	other   time.Time         // when it last was another one; zero for never
}

func newQueue() *queue { return &queue{arrived: make(chan struct{}, 1)} }

func (q *queue) add(it *item) {
	q.mu.Lock()
	q.line.Add(it.session, it)
	if it.session != "" && it.session != q.session {
		if q.session != "" {
			q.other = time.Now()
		}
		q.session = it.session
	}
	q.mu.Unlock()
	q.signal()
}

// shared reports whether several sessions have written lately. A session that begins to write waits for what
// another has begun in larger pieces, once.
func (q *queue) shared() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharedLocked()
}

func (q *queue) sharedLocked() bool { return !q.other.IsZero() && time.Since(q.other) < sharedFor }

func (q *queue) signal() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

// len returns how many items wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.Len()
}

// take takes what is written next, as much as fits into one transaction.
func (q *queue) take() (batch []*item) {
	runtime.Gosched() // let goroutines that are about to record join the batch
	q.mu.Lock()
	defer q.mu.Unlock()
	most := batchRows
	if !q.sharedLocked() {
		most = math.MaxInt
	}
	for rows, bytes := 0, 0; bytes < batchBytes; {
		session, it, ok := q.line.Peek()
		if !ok {
			return batch
		}
		if rows += it.rows(); rows > most && len(batch) > 0 {
			break
		}
		bytes += it.size()
		q.line.Take(session, int64(it.rows()))
		batch = append(batch, it)
	}
	if q.line.Len() > 0 {
		q.signal()
	}
	return batch
}
