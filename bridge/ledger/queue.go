package ledger

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// QueueSize is how many items wait before Keep blocks.
	QueueSize = 128

	batchBytes = 8 << 20 // bytes of records in one transaction, about
)

// An Item is records, journal entries, or both, waiting to be written together.
type Item struct {
	Bodies  [][]byte // of the records
	Journal []JournalEntry
	Uses    []Use
	At      time.Time // of entries and uses: now
	Durable bool
	Refused error // the item itself is at fault: nothing of it was written

	taken     bool // by the writing goroutine, under Queue.mu
	abandoned bool // by its caller, under Queue.mu
	done      chan error
}

// A Use is that of a grant, which may be used at most so often; see Record.
type Use struct {
	Grant string
	Most  int
}

// NewItem returns an item of records, or their error.
func NewItem(all []Record, clock func() time.Time) (*Item, error) {
	it := &Item{done: make(chan error, 1)}
	for i := range all {
		r := &all[i]
		body, err := Encode(*r, clock)
		if err != nil {
			return nil, err
		}
		it.Bodies, it.Durable = append(it.Bodies, body), it.Durable || r.Durable
		if r.GrantUses > 0 {
			it.Uses, it.At = append(it.Uses, Use{r.Grant, r.GrantUses}), clock()
		}
		if err := it.Add(r.Journal, clock); err != nil {
			return nil, err
		}
	}
	return it, nil
}

// Add checks entries and adds them to the item.
func (it *Item) Add(entries []JournalEntry, clock func() time.Time) error {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return err
		}
		if entries[i].Kind == Began {
			it.At = clock()
		}
	}
	it.Journal = append(it.Journal, entries...)
	return nil
}

// size returns about how many bytes an item writes.
func (it *Item) size() int {
	n := 0
	for _, body := range it.Bodies {
		n += len(body)
	}
	for i := range it.Journal {
		n += len(it.Journal[i].Body)
	}
	return n
}

// A Queue leads items from those who record to the one goroutine that writes.
type Queue struct {
	C       chan *Item    // what waits; for the writing goroutine
	Stop    chan struct{} // closed when nothing more is to be written
	Stopped chan struct{} // closed when the writing goroutine has ended

	mu sync.Mutex
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{C: make(chan *Item, QueueSize), Stop: make(chan struct{}), Stopped: make(chan struct{})}
}

// Keep hands an item to the writing goroutine and waits until it is stored. If ctx ends
// before it is being written, it never is.
func (q *Queue) Keep(ctx context.Context, it *Item) error {
	select {
	case q.C <- it:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.Stop:
		return ErrClosed
	}
	select {
	case err := <-it.done:
		return err
	case <-q.Stopped:
		select {
		case err := <-it.done:
			return err
		default:
			return ErrClosed
		}
	case <-ctx.Done():
		q.mu.Lock()
		it.abandoned = !it.taken
		q.mu.Unlock()
		if it.abandoned {
			return ctx.Err()
		}
		return <-it.done // it is being written
	}
}

// Gather takes the items queued behind it, as many as fit into one transaction, and
// returns those that nobody has given up, and whether one of them must survive a power
// cut.
func (q *Queue) Gather(it *Item) (taken []*Item, durable bool) {
	runtime.Gosched() // let goroutines that are about to record join the batch
	batch := []*Item{it}
	for size := it.size(); size < batchBytes; {
		select {
		case it := <-q.C:
			batch = append(batch, it)
			size += it.size()
			continue
		default:
		}
		break
	}
	taken = batch[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range batch {
		if it.taken = !it.abandoned; it.taken {
			taken, durable = append(taken, it), durable || it.Durable
		}
	}
	return taken, durable
}

// Answer answers those who wait for a batch, which was written unless err is set, and
// returns how many rows were.
func (q *Queue) Answer(batch []*Item, err error) (rows int64) {
	for _, it := range batch {
		if err == nil && it.Refused == nil {
			rows += int64(len(it.Bodies))
		}
		it.done <- cmp.Or(err, it.Refused)
	}
	return rows
}
