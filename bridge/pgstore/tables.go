package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/stopwatch"
)

// tables are those of one part of the store. Every change of them is one short
// transaction that begins with a lock: that of the part's row in heads.
type tables struct {
	o     *Options
	pool  *pgxpool.Pool
	watch *watcher
	turn  chan struct{} // has a token while a change is under way
}

func newTables(o *Options, pool *pgxpool.Pool, head string) *tables {
	return &tables{o, pool, newWatcher(o, pool, head), make(chan struct{}, 1)}
}

// Changed returns a channel that the next change closes.
func (s *tables) Changed() <-chan struct{} { return s.watch.changed() }

// errSame ends a transaction that changed nothing, so that nobody is notified.
var errSame = errors.New("nothing was changed")

// A lostCommit is the error of a transaction whose end may have reached the server.
type lostCommit struct{ error }

func (e lostCommit) Unwrap() error { return e.error }

// change runs do in a transaction that has the lock of the part. The caller may give up
// until it has the lock; after that a change is whole or not at all.
func (s *tables) change(ctx context.Context, do func(pgx.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	xid, err := s.transact(ctx, do)
	if lost := (lostCommit{}); errors.As(err, &lost) {
		if err = s.settle(context.WithoutCancel(ctx), xid); err != nil {
			err = fmt.Errorf("%w; whether it was kept is not known: %w", lost.error, err)
		}
	}
	if err == nil {
		s.watch.now()
	}
	return err
}

func (s *tables) transact(waiting context.Context, do func(pgx.Tx) error) (xid string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(waiting), s.o.Patience)
	defer cancel()
	waiting, stop := context.WithTimeout(waiting, s.o.Patience)
	defer stop()
	// One at a time: if the bridge is frozen, those that wait would get the lock in turn,
	// and each would keep it from the others until the server ends it.
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-waiting.Done():
		return "", classed(waiting.Err())
	}
	t, err := s.pool.Begin(waiting)
	if err != nil {
		return "", classed(err)
	}
	defer t.Rollback(ctx)
	var n int64
	if err := t.QueryRow(waiting, "UPDATE heads SET changes = changes + 1 WHERE name = $1 RETURNING changes, "+transaction, s.watch.head).Scan(&n, &xid); err != nil {
		return xid, classed(err)
	}
	if err := do(t); err != nil {
		return xid, classedBut(err)
	}
	if _, err := t.Exec(ctx, "SELECT pg_notify($1, $2)", s.watch.channel, strconv.FormatInt(n, 10)); err != nil {
		return xid, classed(err)
	}
	err = t.Commit(ctx)
	if err != nil && !certain(err) {
		return xid, lostCommit{classed(err)}
	}
	return xid, classed(err)
}

// settle returns nil if a transaction was committed whose end may have reached the
// server. Behind the lock it is over.
func (s *tables) settle(ctx context.Context, xid string) error {
	for until := time.Now().Add(2 * s.o.Patience); ; {
		status, err := s.status(ctx, xid)
		switch {
		case err == nil && status == committed:
			return nil
		case err == nil:
			return unavailable("it was not kept")
		case errors.Is(err, errAnotherServer), time.Now().After(until):
			return err
		}
		if !stopwatch.Pause(s.watch.ctx, againAfter) {
			return ledger.ErrClosed
		}
	}
}

func (s *tables) status(ctx context.Context, xid string) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Patience)
	defer cancel()
	t, err := s.pool.Begin(ctx)
	if err != nil {
		return "", classed(err)
	}
	defer t.Rollback(ctx)
	if _, err = t.Exec(ctx, "SELECT 1 FROM heads WHERE name = $1 FOR UPDATE", s.watch.head); err == nil {
		status, err = statusOf(ctx, t, xid)
	}
	return status, classed(err)
}

// classedBut classes errors of the database, and leaves those of callers alone.
func classedBut(err error) error {
	if fromServer(err) {
		return classed(err)
	}
	return err
}
