package sqlstore

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"codemode-bridge/bridge/ledger"
)

const (
	compactAfter = 200 * time.Millisecond // without records, before rows move from recent to rows
	pollEvery    = 150 * time.Millisecond // between looks for other processes' changes
	compactRows  = 32                     // rows that move in one transaction
	maxRecent    = 50_000                 // rows in recent at which they move even under load

	recheckEvery = 2 * time.Second // between looks whether a damaged store was mended

	sweepEvery = 10 * time.Minute // between looks for shared bytes that no journal names
)

// A DB is a ledger.Store and a ledger.Journal in a SQLite file.
type DB struct {
	o      Options
	queue  *ledger.Queue
	jobs   chan *job
	poke   chan struct{} // somebody began to watch
	close  sync.Once
	behind sync.WaitGroup // the checks in the background

	mu          sync.Mutex
	file        *file // what is read; nil if nothing can be
	fault       fault // why nothing can be written
	hiddenFault fault // damage that opening the file does not find; it lasts as long as the file is in its place
	watch       chan struct{}

	// Only the writing goroutine uses these.
	stopCheck  context.CancelFunc // ends the check in the background
	lastSeen   *lastSeen          // the last row that this process wrote or found
	key        []byte             // of lastSeen's store
	doubted    bool               // a write failed: what is in the file may not be on the disk
	compacting bool               // rows move from recent to rows, until a record comes
	second     ledger.SecondPlace
	copier     copier
	swept      time.Time // when shared bytes that no journal names were last removed
}

// A fault is what is wrong with a store; nothing if err is nil.
type fault struct {
	err error
	at  time.Time
	in  os.FileInfo // the file that has it; nil when there was none
}

// stands reports whether the file that has the fault is the one at path.
func (w fault) stands(path string) bool {
	now, err := os.Stat(path)
	return err == nil && w.in != nil && os.SameFile(now, w.in)
}

// A job is work for the writing goroutine.
type job struct {
	do   func(context.Context, *file) error
	done chan error
}

// Open opens a store, or makes one. It starts a goroutine that writes and one that
// verifies the whole log once a day; Close ends both.
//
// Damage is not an error of Open: Err then says what is wrong, Record fails, and
// whatever is readable can be read. An error is something that a person must fix:
// a folder that cannot be written, a network file system, a newer schema.
func Open(ctx context.Context, o Options) (*DB, error) {
	o.setDefaults()
	f, err := openFile(ctx, &o, nil, false)
	if err != nil && !errors.Is(err, ledger.ErrDamaged) {
		return nil, err
	}
	db := &DB{
		o: o, queue: ledger.NewQueue(), jobs: make(chan *job), poke: make(chan struct{}, 1), file: f, stopCheck: func() {}, second: ledger.NewSecondPlace(o.CheckpointFile, o.Clock, o.Logger), swept: time.Now(),
		copier: copier{busy: make(chan struct{}, 1)},
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		db.failed(err)
	} else {
		if f.seq > 0 {
			db.remember(f)
		}
		db.checkBehind(ctx, f)
	}
	go db.run(ctx)
	return db, nil
}

// remember stores the last row of f as what this process knows of the store.
func (db *DB) remember(f *file) {
	db.lastSeen, db.key = &lastSeen{f.id, f.seq, f.hash}, f.key
}

// Record appends records. See ledger.Store.
func (db *DB) Record(ctx context.Context, all ...ledger.Record) error {
	if err := ctx.Err(); err != nil || len(all) == 0 {
		return err
	}
	if db.o.ReadOnly {
		return errReadOnly
	}
	it, err := ledger.NewItem(all, db.o.Clock)
	if err != nil {
		return err
	}
	return db.queue.Keep(ctx, it)
}

// Append stores entries. See ledger.Journal.
func (db *DB) Append(ctx context.Context, entries ...ledger.JournalEntry) error {
	if err := ctx.Err(); err != nil || len(entries) == 0 {
		return err
	}
	if db.o.ReadOnly {
		return errReadOnly
	}
	it, err := ledger.NewItem(nil, db.o.Clock)
	if err == nil {
		err = it.Add(entries, db.o.Clock)
	}
	if err != nil {
		return err
	}
	return db.queue.Keep(ctx, it)
}

// Changed returns a channel that is closed after the next change.
func (db *DB) Changed() <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.watch == nil {
		db.watch = make(chan struct{})
		select {
		case db.poke <- struct{}{}:
		default:
		}
	}
	return db.watch
}

// Shared reports whether records of several sessions were received within the last minute.
func (db *DB) Shared() bool { return db.queue.Shared() }

// Err says why Record fails at present. After a failed write it says so until a
// later record has been written.
func (db *DB) Err() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	select {
	case <-db.queue.Stop:
		return errClosed
	default:
		return db.wrong()
	}
}

// wrong says why nothing can be written; nil if writing is possible. The caller
// holds DB.mu.
func (db *DB) wrong() error {
	if db.hiddenFault.err != nil {
		return db.hiddenFault.err
	}
	return db.fault.err
}

// Close writes what is queued, leaves a checkpoint in the second place, and waits
// for the store's goroutines.
func (db *DB) Close() error {
	db.close.Do(func() {
		close(db.queue.Stop)
		<-db.queue.Stopped
	})
	return nil
}

// run is the goroutine that writes.
//
//	record, entries -> queue -> take -> commit -> answer
//	                              ^        |
//	                              +- next -+--- nothing for a while -> compact, sign, sweep
func (db *DB) run(ctx context.Context) {
	defer close(db.queue.Stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait, ok := db.wait(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-db.queue.Arrived:
			db.commit(ctx)
		case j := <-db.jobs:
			j.done <- db.do(ctx, j.do)
		case <-db.poke:
		case <-timer.C:
			db.tidy(ctx)
		case <-db.queue.Stop:
			for db.queue.Len() > 0 {
				db.commit(ctx)
			}
			db.end(ctx)
			return
		}
	}
}

// end leaves the file as the next process should find it.
func (db *DB) end(ctx context.Context) {
	db.stopCheck()
	db.behind.Wait()
	db.copier.under.Wait()
	db.save()
	db.mu.Lock()
	f, wrong := db.file, db.wrong()
	db.mu.Unlock()
	if f != nil {
		f.closeReading() // first: who closes last removes the -wal
		if wrong == nil && !db.o.ReadOnly && f.same(db.o.Path) == nil {
			if err := (remover{f}).removeAll(ctx); err != nil {
				db.o.Logger.Warn("entries of ended runs stay in the audit log's file", "error", err)
			}
			if err := f.sweep(ctx); err != nil {
				db.o.Logger.Warn("bytes of ended runs stay in the audit log's file", "error", err)
			}
			if err := f.copyWAL(ctx); err != nil {
				db.o.Logger.Warn("rows of the audit log stay in its -wal", "error", err)
			}
		}
		f.closeWriting()
	}
	db.notify()
}

// wait returns how long until something needs to be done.
func (db *DB) wait() (time.Duration, bool) {
	wait := time.Duration(-1)
	sooner := func(d time.Duration) {
		if d = max(d, 0); wait < 0 || d < wait {
			wait = d
		}
	}
	db.mu.Lock()
	watched, f, wrong := db.watch != nil, db.file, db.wrong()
	db.mu.Unlock()
	if watched {
		sooner(pollEvery)
	}
	if wrong == nil && !db.o.ReadOnly {
		if db.compacting || f.dropped > 0 {
			sooner(0)
		} else if f.compacted < f.seq {
			sooner(compactAfter)
		}
		if in, ok := db.second.Due(); ok {
			sooner(in)
		}
		if f.orphans {
			sooner(sweepEvery - time.Since(db.swept))
		}
	}
	return wait, wait >= 0
}

// commit writes what is next in the queue and answers its callers.
func (db *DB) commit(ctx context.Context) {
	taken, durable := db.queue.Take()
	if len(taken) == 0 {
		return
	}
	err := db.do(ctx, func(ctx context.Context, f *file) error {
		return f.add(ctx, db.o.Path, taken, durable || db.o.AllDurable)
	})
	records, rows := db.queue.Answer(taken, err)
	if err != nil {
		return
	}
	db.notify()
	f := db.file
	db.copier.wrote(ctx, f, rows, db.o.Path)
	db.compacting = false
	db.second.Rows += records
	if in, ok := db.second.Due(); ok && in <= 0 {
		db.save()
	}
	if f.seq-f.compacted > maxRecent {
		db.compact(ctx, 2*rows+compactRows)
	}
	if f.dropped > mostDropped {
		removeDropped(ctx, db, 2*rows+compactRows)
	}
}

// compact moves rows to the indexed table.
func (db *DB) compact(ctx context.Context, n int) {
	err := db.do(ctx, func(ctx context.Context, f *file) (err error) {
		db.compacting, err = f.compact(ctx, n)
		return err
	})
	db.compacting = db.compacting && err == nil
}

// removeDropped calls [remover.remove] in a store's writing goroutine.
func removeDropped(ctx context.Context, db *DB, n int) {
	_ = db.do(ctx, func(ctx context.Context, f *file) error { return remover{f}.remove(ctx, n) }) // Err says it
}

// do runs work on a file that can be written. After an error nothing is trusted
// until the file has been reopened.
func (db *DB) do(ctx context.Context, work func(context.Context, *file) error) error {
	f, err := db.ready(ctx)
	if err != nil {
		return err
	}
	if err := work(ctx, f); err != nil {
		db.doubted = db.doubted || code(err) == sqlite3.SQLITE_IOERR
		f.closeWriting()
		return db.failed(err)
	}
	db.remember(f)
	return nil
}

// failed keeps err as the reason why nothing is written from now on.
func (db *DB) failed(err error) error {
	err = classed(err)
	info, _ := os.Stat(db.o.Path) // nil when it is gone
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.wrong() == nil {
		db.o.Logger.Error("calls are refused", "error", err)
	}
	db.fault = fault{err, time.Now(), info}
	return err
}

// ready returns a file that can be written, reopened if something was wrong with
// it. Replacing a damaged file by another one ends the damage.
func (db *DB) ready(ctx context.Context) (*file, error) {
	db.mu.Lock()
	f, was, deep := db.file, db.fault, db.hiddenFault
	db.mu.Unlock()
	switch {
	case deep.err != nil:
		if deep.stands(db.o.Path) {
			return nil, deep.err
		}
	case was.err == nil:
		err := f.same(db.o.Path)
		if err == nil {
			return f, nil
		}
		db.failed(err)
	case errors.Is(was.err, ledger.ErrDamaged) && time.Since(was.at) < recheckEvery && was.stands(db.o.Path):
		return nil, was.err
	}
	if f != nil {
		f.closeWriting()
	}
	fresh, err := openFile(ctx, &db.o, db.lastSeen, false)
	if err == nil && db.doubted && !db.o.ReadOnly {
		if err = fresh.resync(ctx); err != nil {
			fresh.closeWriting()
			fresh.closeReading()
			fresh = nil
		}
	}
	if fresh != nil {
		db.stopCheck()
		db.mu.Lock()
		db.file = fresh
		if db.hiddenFault.err != nil && !os.SameFile(fresh.info, db.hiddenFault.in) {
			db.hiddenFault = fault{}
		}
		db.mu.Unlock()
		if f != nil {
			f.closeReading()
		}
	}
	if err != nil {
		return nil, db.failed(err)
	}
	db.doubted = false
	db.mu.Lock()
	db.fault = fault{}
	wrong := db.wrong() // the check may have ended meanwhile
	db.mu.Unlock()
	if wrong != nil {
		return nil, wrong
	}
	db.checkBehind(ctx, fresh)
	db.o.Logger.Info("the audit log can be written again")
	return fresh, nil
}

// tidy does the work that is left for a quiet moment.
func (db *DB) tidy(ctx context.Context) {
	db.look(ctx)
	if db.Err() != nil || db.o.ReadOnly {
		return
	}
	switch {
	case db.file.dropped > 0:
		removeDropped(ctx, db, compactRows)
		return // one piece at a time: a record may have come
	case db.file.compacted < db.file.seq:
		db.compact(ctx, compactRows)
	}
	if in, ok := db.second.Due(); ok && in <= 0 {
		db.save()
	}
	if db.file.orphans && time.Since(db.swept) >= sweepEvery {
		db.swept = time.Now()
		_ = db.do(ctx, func(ctx context.Context, f *file) error { return f.sweep(ctx) }) // Err says it
	}
}

// look notifies the watchers if another process changed the store.
func (db *DB) look(ctx context.Context) {
	db.mu.Lock()
	watched := db.watch != nil
	db.mu.Unlock()
	if !watched {
		return
	}
	f, err := db.ready(ctx)
	if err != nil {
		return
	}
	if data, err := f.version(ctx); err == nil && data != f.seen {
		f.seen = data
		db.notify()
	}
}

// notify notifies the watchers.
func (db *DB) notify() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.watch != nil {
		close(db.watch)
		db.watch = nil
	}
}

// ask has the writing goroutine do a job.
func (db *DB) ask(ctx context.Context, do func(context.Context, *file) error) error {
	if db.o.ReadOnly {
		return errReadOnly
	}
	j := &job{do, make(chan error, 1)}
	select {
	case db.jobs <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	case <-db.queue.Stop:
		return errClosed
	}
}
