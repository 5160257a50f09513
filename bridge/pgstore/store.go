package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"codemode-bridge/bridge/ledger"
)

const (
	readers    = 4                      // connections that read
	againAfter = 200 * time.Millisecond // after a failed connection, before another is tried
	sweepEvery = 10 * time.Minute       // between looks for shared bytes that no journal names
	mendEvery  = time.Second            // between tries to reach a server that was lost, without records
)

// A DB is a ledger.Store and a ledger.Journal in a PostgreSQL database.
type DB struct {
	o      Options
	id     string // the store's
	key    []byte
	pool   *pgxpool.Pool
	queue  *ledger.Queue
	jobs   chan *job
	close  sync.Once
	watch  *watcher
	behind sync.WaitGroup // the verification in the background
	end    context.CancelFunc

	mu     sync.Mutex
	fault  error     // why nothing can be written
	failed time.Time // when that was found
	hidden error     // damage that only the verification finds
	whole  time.Time // when opening it read all of it

	// Only the writing goroutine uses these.
	link    *link
	known   head // the last row that this process wrote or found
	second  ledger.SecondPlace
	orphans bool      // there may be shared bytes that no journal names
	swept   time.Time // when they were last removed
}

// A head is the last row of a log.
type head struct {
	seq  int64
	hash ledger.Hash
}

// A job is work for the writing goroutine.
type job struct {
	do   func(context.Context, *tx) error
	done chan error
}

// Open opens a store, or makes one. It starts a goroutine that writes and one that
// verifies the whole log once a day; Close ends both.
//
// Damage is not an error of Open: Err then says what is wrong, Record fails, and
// whatever is readable can be read. An error is something that a person must fix: a
// database that cannot be reached, a newer schema, a wrong key.
func Open(ctx context.Context, o Options) (*DB, error) { return open(ctx, o, nil) }

func open(ctx context.Context, o Options, fresh *identity) (*DB, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", Where(o.URL), err)
	}
	is, err := o.establish(ctx, conn, fresh)
	if err != nil {
		hangUp(conn)
		return nil, fmt.Errorf("opening %s: %w", Where(o.URL), err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	pool, err := o.pool(ctx, readers)
	if err != nil {
		end()
		hangUp(conn)
		return nil, err
	}
	db := &DB{o: o, id: is.id, key: is.key, pool: pool, queue: ledger.NewQueue(), jobs: make(chan *job), end: end,
		watch: newWatcher(&o, pool, "log"), second: ledger.NewSecondPlace(o.CheckpointFile, o.Clock, o.Logger)}
	err = db.check(ctx, conn)
	if err != nil {
		hangUp(conn)
		if !errors.Is(err, ledger.ErrDamaged) {
			end()
			pool.Close()
			return nil, fmt.Errorf("opening %s: %w", Where(o.URL), err)
		}
		db.failing(err)
	} else if db.o.ReadOnly {
		hangUp(conn)
	} else {
		db.link = newLink(conn)
	}
	if !o.ReadOnly {
		db.behind.Go(func() { verifier{db}.verifyBehind(ctx) })
	}
	db.swept = time.Now()
	go db.run(ctx)
	return db, nil
}

// Record appends records. See ledger.Store.
func (db *DB) Record(ctx context.Context, all ...ledger.Record) error {
	if err := ctx.Err(); err != nil || len(all) == 0 {
		return err
	}
	if db.o.ReadOnly {
		return ledger.ErrReadOnly
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
		return ledger.ErrReadOnly
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
func (db *DB) Changed() <-chan struct{} { return db.watch.changed() }

// Err says why Record fails at present.
func (db *DB) Err() error {
	select {
	case <-db.queue.Stop:
		return ledger.ErrClosed
	default:
	}
	return db.wrong()
}

// wrong says why nothing can be written; nil if writing is possible.
func (db *DB) wrong() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.hidden != nil {
		return db.hidden
	}
	return db.fault
}

// WholeAt returns when all rows were last known to be right; zero if that is not known.
func (db *DB) WholeAt() time.Time {
	v, err := verifier{db}.verified(context.Background())
	db.mu.Lock()
	defer db.mu.Unlock()
	if err != nil || db.whole.After(v.Began) {
		return db.whole
	}
	return v.Began
}

// Key returns a secret of this store for another purpose.
func (db *DB) Key(purpose string) ([]byte, error) { return ledger.Derive(db.key, purpose), nil }

// Close writes what is queued, leaves a checkpoint in the second place, and waits for
// the store's goroutines.
func (db *DB) Close() error {
	db.close.Do(func() {
		close(db.queue.Stop)
		<-db.queue.Stopped
		db.end()
		db.behind.Wait()
		db.watch.close()
		db.pool.Close()
	})
	return nil
}

// run is the goroutine that writes.
func (db *DB) run(ctx context.Context) {
	defer close(db.queue.Stopped)
	mend := time.NewTicker(mendEvery)
	defer mend.Stop()
	for {
		select {
		case <-db.queue.Arrived:
			db.commit(ctx)
		case j := <-db.jobs:
			j.done <- db.do(ctx, j.do)
		case <-mend.C:
			db.mend(ctx)
		case <-db.queue.Stop:
			for db.queue.Len() > 0 {
				db.commit(ctx)
			}
			if db.orphans && db.wrong() == nil {
				db.sweep(ctx)
			}
			db.second.Save(db.id, db.known.seq, db.known.hash, db.key)
			if db.link != nil {
				hangUp(db.link.conn)
			}
			return
		}
	}
}

// mend reaches again for a server that was lost, so that Err ends with the fault, and
// writes a checkpoint that is due.
func (db *DB) mend(ctx context.Context) {
	if !db.o.ReadOnly && db.Err() != nil {
		_, _ = db.ready(ctx) // Err says it
	}
	if in, ok := db.second.Due(); ok && in <= 0 {
		db.second.Save(db.id, db.known.seq, db.known.hash, db.key)
	}
	if db.orphans && db.Err() == nil && time.Since(db.swept) >= sweepEvery {
		db.sweep(ctx)
	}
}

// commit writes what is next in the queue, and answers its callers.
func (db *DB) commit(ctx context.Context) {
	taken, _ := db.queue.Take()
	if len(taken) == 0 {
		return
	}
	err := db.do(ctx, func(ctx context.Context, t *tx) error { return t.add(ctx, taken) })
	records, _ := db.queue.Answer(taken, err)
	db.second.Rows += records
	if in, ok := db.second.Due(); err == nil && ok && in <= 0 {
		db.second.Save(db.id, db.known.seq, db.known.hash, db.key)
	}
}

// do runs work in a transaction. After an error the connection is not used again.
func (db *DB) do(ctx context.Context, work func(context.Context, *tx) error) error {
	l, err := db.ready(ctx)
	if err != nil {
		return err
	}
	t := &tx{db: db, link: l}
	ctx, cancel := context.WithTimeout(ctx, db.o.Patience)
	defer cancel()
	no, err := t.run(ctx, work)
	if err == nil {
		db.known = head{l.seq, l.hash}
		if no == nil {
			db.watch.now()
		}
		return no
	}
	hangUp(l.conn)
	db.link = nil
	if !t.sent {
		return db.failing(classed(err))
	}
	return db.settle(context.WithoutCancel(ctx), t, classed(err))
}

// failing keeps err as the reason why nothing is written.
func (db *DB) failing(err error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.fault == nil {
		db.o.Logger.Error("calls are refused", "error", err)
	}
	db.fault, db.failed = err, time.Now()
	return err
}

// ready returns a connection that can write.
func (db *DB) ready(ctx context.Context) (*link, error) {
	db.mu.Lock()
	hidden, fault, at := db.hidden, db.fault, db.failed
	db.mu.Unlock()
	switch {
	case hidden != nil:
		return nil, hidden
	case db.link != nil && !db.link.conn.IsClosed():
		return db.link, nil
	case fault != nil && time.Since(at) < againAfter:
		return nil, fault
	}
	conn, err := db.o.connect(ctx)
	if err == nil {
		if err = db.recheck(ctx, conn); err != nil {
			hangUp(conn)
		}
	}
	if err != nil {
		return nil, db.failing(err)
	}
	db.link = newLink(conn)
	db.mu.Lock()
	db.fault = nil
	db.mu.Unlock()
	if fault != nil {
		db.o.Logger.Info("the audit log can be written again")
	}
	return db.link, nil
}

// ask has the writing goroutine do a job in a transaction.
func (db *DB) ask(ctx context.Context, do func(context.Context, *tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.o.ReadOnly {
		return ledger.ErrReadOnly
	}
	j := &job{do, make(chan error, 1)}
	select {
	case db.jobs <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	case <-db.queue.Stop:
		return ledger.ErrClosed
	}
}

// sweep removes shared bytes that no journal names. A journal that begins later finds
// them missing and writes them again.
func (db *DB) sweep(ctx context.Context) {
	db.swept = time.Now()
	err := db.do(ctx, func(_ context.Context, t *tx) error {
		t.queue(-1, "DELETE FROM shared WHERE name NOT IN (SELECT shared FROM journals)")
		return nil
	})
	if err == nil {
		db.orphans = false
	}
}
