package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// MaxDelay is how long a deferred record waits at most until it is written. A run
// begins to write trailTime earlier, so that the write is over by then.
const (
	MaxDelay  = 20 * time.Millisecond
	trailTime = 5 * time.Millisecond
)

const (
	// maxDeferred is how many bytes may wait, about.
	maxDeferred = 1 << 20
	// together is how many rows, of records and of journals, a trail writes in one transaction, about, if other sessions
	// write too: a script that makes hundreds of calls at once would else have them wait for all of these.
	together = 32
	// syncedTogether is how many if the transaction waits for the disk, which takes as long as so many rows.
	syncedTogether = 3 * together
)

// ErrTrailLost: a deferred record of the run was not written, so nothing that
// followed it may be seen.
var ErrTrailLost = errors.New("what the run did could not be written down")

// A Trail writes the records of one run, in the order in which it receives them and
// in as few transactions as that takes. Record returns once a record is written, and
// with it all before. Defer leaves a record to the next one, or to the timer, so that
// the caller must show nobody what the record is about before Flush has returned nil
// or the record's done was called.
//
//	Defer  ──▶ queue ──────────────┐
//	Record ──▶ queue ─▶ one writes what is queued ─▶ Recorder.Record(a, b, c)
//	timer  ────────────────────────┘   the others wait
//
// A transaction has a bounded number of rows if other sessions write too, and only those whose records are written are woken.
// If a deferred record is not written, the trail is lost: lost is called once, and no
// later record is written except the run's last.
type Trail struct {
	to     Recorder
	fill   func(*Record)
	within time.Duration // that Defer may leave a record; 0 is not at all
	lost   func(error)

	mu       sync.Mutex
	waiting  []waiting // until a write is over, those with the oldest records first
	queue    []*trailed
	bytes    int  // in the queue, about
	received int  // records
	finished int  // of these, the oldest ones: written, or refused
	written  bool // any was
	writing  bool
	last     bool // nothing is deferred any more
	err      error
	due      time.Time   // when what is deferred is to be written; zero if nothing waits for that
	timer    *time.Timer // nil until something is deferred
	armed    bool        // it goes off, then or earlier
}

// A trailed record is one that is not written yet.
type trailed struct {
	record   Record
	deferred bool
	done     func(error)
	err      error
}

// A waiting writer has a record in the queue, or in what another writes.
type waiting struct {
	records int           // that must be finished
	over    chan struct{} // closed when they are, or when it is to write
}

// Entries are journal entries that are written together with a record. Done, if not nil,
// is told whether that was written, before any later record is.
type Entries struct {
	All  []JournalEntry
	Done func(error)
}

// NewTrail makes the trail of a run. Fill puts into each record what all have. A record waits until MaxDelay at most, and not at
// all if defers is false. Lost, which is called once at most, ends the run: it and the
// done of a record must not use the trail.
func NewTrail(to Recorder, fill func(*Record), defers bool, lost func(error)) *Trail {
	t := &Trail{to: to, fill: fill, lost: lost}
	if defers {
		t.within = MaxDelay - trailTime
	}
	return t
}

// Record writes a record, after those that were deferred.
func (t *Trail) Record(ctx context.Context, r Record, e Entries) error {
	p := t.trailed(r, e)
	if err := ctx.Err(); err != nil {
		p.end(err)
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(p)
	t.awaitLocked(ctx, t.received)
	return p.err
}

// Defer writes a record with the next one, or within MaxDelay. While the recorder says
// that it cannot write, and after End, it is written at once; only then there is an error.
func (t *Trail) Defer(ctx context.Context, r Record, e Entries) error {
	p := t.trailed(r, e)
	p.deferred = t.within > 0
	failing, ok := t.to.(interface{ Err() error })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(p)
	if t.within == 0 || t.last || t.err != nil || t.bytes > maxDeferred || ok && failing.Err() != nil {
		t.awaitLocked(ctx, t.received)
		return p.err
	}
	if t.due.IsZero() {
		t.due = time.Now().Add(t.within)
		t.armLocked(ctx, t.within)
	}
	return nil
}

// armLocked sees to it that the timer goes off in time. One that goes off earlier finds nothing to do and is armed
// again: that is cheaper than to stop it at each call, after which another one is armed.
func (t *Trail) armLocked(ctx context.Context, in time.Duration) {
	switch {
	case t.armed:
	case t.timer == nil:
		ctx = context.WithoutCancel(ctx)
		t.timer = time.AfterFunc(in, func() { t.late(ctx) })
	default:
		t.timer.Reset(in)
	}
	t.armed = true
}

// Flush writes what was deferred. After an error nothing of the run may be shown.
func (t *Trail) Flush(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaitLocked(ctx, t.received)
	return t.err
}

// late writes what was deferred and has waited long enough.
func (t *Trail) late(ctx context.Context) {
	if t.isDue(ctx) {
		_ = t.Flush(ctx) // lost says it
	}
}

// isDue reports, when the timer goes off, whether anything has waited long enough. If not, it is armed again.
func (t *Trail) isDue(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	if t.due.IsZero() {
		return false
	}
	if in := time.Until(t.due); in > 0 {
		t.armLocked(ctx, in)
		return false
	}
	t.due = time.Time{} // what is deferred from now on has its own
	return true
}

// End writes the run's last record, also if the trail is lost, provided that any
// record was written; but the error says then that it is.
func (t *Trail) End(ctx context.Context, r Record, e Entries) error {
	p := t.trailed(r, e)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.disarmLocked()
	t.last = true
	t.awaitLocked(ctx, t.received-len(t.queue)) // what is being written may fail
	switch {
	case t.err == nil:
		t.addLocked(p)
		t.awaitLocked(ctx, t.received)
		return cmp.Or(t.err, p.err)
	case t.written:
		t.mu.Unlock() // whoever comes now hears that the trail is lost
		err := t.to.Record(ctx, p.record)
		if err != nil && len(p.record.Journal) > 0 { // which may be why the trail is lost
			p.record.Journal = nil
			_ = t.to.Record(ctx, p.record)
		}
		p.end(err)
		t.mu.Lock()
	default:
		p.end(t.err)
	}
	return t.err
}

// disarmLocked stops the timer, which nothing needs after the end unless something is in the queue.
func (t *Trail) disarmLocked() {
	if t.timer != nil && len(t.queue) == 0 {
		t.timer.Stop()
	}
}

func (t *Trail) trailed(r Record, e Entries) *trailed {
	t.fill(&r)
	r.Journal = e.All
	return &trailed{record: r, done: e.Done}
}

// addLocked puts a record into the queue.
func (t *Trail) addLocked(p *trailed) {
	t.queue = append(t.queue, p)
	t.received++
	t.bytes += p.bytes()
}

// awaitLocked waits until the first n records are finished, and writes what is queued
// whenever nobody else does.
func (t *Trail) awaitLocked(ctx context.Context, n int) {
	for t.finished < n {
		if t.writing {
			w := waiting{n, make(chan struct{})}
			at, _ := slices.BinarySearchFunc(t.waiting, n+1, func(w waiting, n int) int { return cmp.Compare(w.records, n) })
			t.waiting = slices.Insert(t.waiting, at, w)
			t.mu.Unlock()
			<-w.over
			t.mu.Lock()
			continue
		}
		batch, lost := t.takeLocked(), t.err
		t.mu.Unlock()
		written, err := t.write(context.WithoutCancel(ctx), batch, lost)
		if err != nil && lost == nil {
			t.lost(err)
		}
		t.mu.Lock()
		t.writing, t.written, t.err = false, t.written || written, err
		t.finished += len(batch)
		t.wakeLocked(n)
	}
}

// takeLocked takes from the queue what is written in one transaction: all of it if no other session
// writes.
func (t *Trail) takeLocked() []*trailed {
	n, rows, most := 0, 0, together
	if s, ok := t.to.(interface{ Shared() bool }); ok && !s.Shared() {
		most = math.MaxInt
	}
	for _, p := range t.queue {
		if p.record.Durable {
			most = max(most, syncedTogether)
		}
		if rows += 1 + len(p.record.Journal); rows > most && n > 0 {
			break
		}
		n++
	}
	batch := t.queue[:n:n]
	t.queue = t.queue[n:]
	for _, p := range batch {
		t.bytes -= p.bytes()
	}
	t.writing = true
	if len(t.queue) == 0 {
		t.due = time.Time{}
	}
	return batch
}

// wakeLocked wakes those whose records are finished. If this writer wants no more than n and others do,
// the next of them writes.
func (t *Trail) wakeLocked(n int) {
	for len(t.waiting) > 0 {
		w := t.waiting[0]
		if w.records > t.finished && t.finished < n {
			return // this one goes on writing
		}
		t.waiting = t.waiting[1:]
		close(w.over)
		if w.records > t.finished {
			return
		}
	}
}

// write writes a batch, and tells of each record what came of it. The error is that of
// a deferred one. What the recorder refuses for a reason of its own, having stored
// nothing, is found by writing the records one by one.
func (t *Trail) write(ctx context.Context, batch []*trailed, lost error) (written bool, err error) {
	if lost != nil {
		for _, p := range batch {
			p.end(lost)
		}
		return false, lost
	}
	all, deferred := make([]Record, len(batch)), false
	for i, p := range batch {
		all[i], deferred = p.record, deferred || p.deferred
	}
	err = t.to.Record(ctx, all...)
	switch {
	case err == nil || len(batch) == 1 || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrDamaged):
		if err != nil && deferred {
			err = fmt.Errorf("%w: %w", ErrTrailLost, err)
			lost = err
		}
		for _, p := range batch {
			p.end(err)
		}
		return err == nil, lost
	}
	for _, p := range batch {
		one, err := t.write(ctx, []*trailed{p}, lost)
		written, lost = written || one, err
	}
	return written, lost
}

// bytes is how long the journal entries of a record are.
func (p *trailed) bytes() (n int) {
	for i := range p.record.Journal {
		n += len(p.record.Journal[i].Body)
	}
	return n
}

// end notes what came of a record.
func (p *trailed) end(err error) {
	p.err = err
	if p.done != nil {
		p.done(err)
	}
}
