package ledger

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"codemode-bridge/bridge/turns"
)

const (
	// BatchRows is how many rows one transaction has if several sessions write, unless one
	// item has more.
	BatchRows = 64

	batchBytes = 8 << 20     // bytes of records in one transaction, about
	sharedFor  = time.Minute // how long a session that has written something counts
)

// An Item is records, journal entries, or both, waiting to be written together.
type Item struct {
	Bodies  [][]byte // of the records
	Journal []JournalEntry
	Uses    []Use
	At      time.Time // of entries and uses: now
	Durable bool
	Refused error // the item itself is at fault: nothing of it was written

	session   string // whose turn it takes: what belongs to none has the run's, or none
	taken     bool   // by the writing goroutine, under Queue.mu
	abandoned bool   // by its caller, under Queue.mu
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
		it.Bodies, it.Durable, it.session = append(it.Bodies, body), it.Durable || r.Durable, cmp.Or(it.session, r.Session)
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
	if len(entries) > 0 {
		it.session = cmp.Or(it.session, entries[0].Run)
	}
	return nil
}

// rows returns about how many rows an item writes.
func (it *Item) rows() int { return len(it.Bodies) + len(it.Journal) }

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

// A Queue leads items from those who record to the one goroutine that writes, in the order
// in which their sessions take turns: one that has written little is in the next
// transaction, whatever others have in the queue. Whoever adds an item waits for it, so
// their number needs no other bound.
type Queue struct {
	Arrived chan struct{} // has a token while anything waits; for the writing goroutine
	Stop    chan struct{} // closed when nothing more is to be written
	Stopped chan struct{} // closed when the writing goroutine has ended

	mu   sync.Mutex
	line turns.Line[*Item] // counted in rows
	last string            // the session that wrote last
	both time.Time         // when it last was another one; zero for never
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{Arrived: make(chan struct{}, 1), Stop: make(chan struct{}), Stopped: make(chan struct{})}
}

// Keep hands an item to the writing goroutine and waits until it is stored. If ctx ends
// before it is being written, it never is.
func (q *Queue) Keep(ctx context.Context, it *Item) error {
	select {
	case <-q.Stop:
		return ErrClosed
	default:
		q.add(it)
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

func (q *Queue) add(it *Item) {
	q.mu.Lock()
	q.line.Add(it.session, it)
	if it.session != "" && it.session != q.last {
		if q.last != "" {
			q.both = time.Now()
		}
		q.last = it.session
	}
	q.mu.Unlock()
	q.signal()
}

// Shared reports whether several sessions have written lately. A session that begins to
// write waits for what another has begun in larger pieces, once.
func (q *Queue) Shared() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharedLocked()
}

func (q *Queue) sharedLocked() bool { return !q.both.IsZero() && time.Since(q.both) < sharedFor }

func (q *Queue) signal() {
	select {
	case q.Arrived <- struct{}{}:
	default:
	}
}

// Len returns how many items wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.Len()
}

// Take takes what is written next, as much as fits into one transaction, without what
// has been given up, and says whether any of it must survive a power cut.
func (q *Queue) Take() (taken []*Item, durable bool) {
	runtime.Gosched() // let goroutines that are about to record join the batch
	q.mu.Lock()
	defer q.mu.Unlock()
	most := BatchRows
	if !q.sharedLocked() {
		most = math.MaxInt
	}
	for rows, bytes := 0, 0; bytes < batchBytes; {
		session, it, ok := q.line.Peek()
		if !ok {
			break
		}
		if rows += it.rows(); rows > most && len(taken) > 0 {
			break
		}
		bytes += it.size()
		q.line.Take(session, int64(it.rows()))
		if it.taken = !it.abandoned; it.taken {
			taken, durable = append(taken, it), durable || it.Durable
		}
	}
	if q.line.Len() > 0 {
		q.signal()
	}
	return taken, durable
}

// Answer answers those who wait for a batch, which was written unless err is set, and
// returns how many records were, and how many rows with their journals.
func (q *Queue) Answer(batch []*Item, err error) (records int64, rows int) {
	for _, it := range batch {
		if err == nil && it.Refused == nil {
			records, rows = records+int64(len(it.Bodies)), rows+it.rows()
		}
		it.done <- cmp.Or(err, it.Refused)
	}
	return records, rows
}
