package sqlstore

import (
	"runtime"
	"sync"

	"codemode-bridge/bridge/turns"
)

const (
	batchBytes = 8 << 20 // bytes of records in one transaction, about
	batchRows  = 32      // rows in one transaction, unless one item has more
)

// A queue holds the items that wait to be written, in the order in which their sessions
// take turns: one that has written little is in the next transaction, whatever others have
// in the queue. Whoever adds an item waits for it, so their number needs no other bound.
type queue struct {
	arrived chan struct{} // has a token while anything waits

	mu   sync.Mutex
	line turns.Line[*item] // counted in rows
}

func newQueue() *queue { return &queue{arrived: make(chan struct{}, 1)} }

func (q *queue) add(it *item) {
	q.mu.Lock()
	q.line.Add(it.session, it)
	q.mu.Unlock()
	q.signal()
}

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
	for rows, bytes := 0, 0; bytes < batchBytes; {
		session, it, ok := q.line.Peek()
		if !ok {
			return batch
		}
		if rows += it.rows(); rows > batchRows && len(batch) > 0 {
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
