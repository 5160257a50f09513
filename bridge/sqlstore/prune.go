package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/ledger"
)

// Prune removes old rows. A kill or ctx may interrupt it without harm: the next
// Prune removes the rest.
func (db *DB) Prune(ctx context.Context, before time.Time) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var gone ledger.Removal
	if err := db.ask(ctx, func(ctx context.Context, f *file) (err error) {
		if err := f.forgetUses(ctx, before, db.o.Clock()); err != nil {
			return err
		}
		gone, err = f.older(ctx, before)
		return err
	}); err != nil || gone.Rows == 0 {
		return 0, err
	}
	if err := db.Record(ctx, gone.Record()); err != nil {
		return 0, fmt.Errorf("recording that rows are pruned: %w", err)
	}
	removed := int64(0)
	for removed < gone.Rows {
		var n int64
		err := db.ask(ctx, func(ctx context.Context, f *file) (err error) {
			n, err = f.remove(ctx, gone.Last)
			return err
		})
		if removed += n; err != nil || n == 0 {
			return removed, err
		}
	}
	db.notify()
	return removed, nil
}

// older returns what Prune is to remove.
func (f *file) older(ctx context.Context, before time.Time) (gone ledger.Removal, err error) {
	if err := f.refresh(ctx); err != nil {
		return gone, err
	}
	for _, table := range []string{"rows NOT INDEXED", "fresh"} {
		var keep int64
		err := f.conn.QueryRowContext(ctx, "SELECT seq FROM "+table+" WHERE time >= ? ORDER BY seq LIMIT 1", ledger.Sortable(before)).Scan(&keep)
		if err == nil {
			gone.Last = keep - 1
			break
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return gone, err
		}
		gone.Last = f.seq
	}
	var hash []byte
	err = f.conn.QueryRowContext(ctx, "SELECT hash FROM log WHERE seq = ?", gone.Last).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Removal{}, nil // nothing is that old
	}
	if err != nil {
		return gone, err
	}
	copy(gone.Hash[:], hash)
	gone.Rows, err = f.number(ctx, "SELECT count(*) FROM log WHERE seq <= ?", gone.Last)
	return gone, err
}

// remove deletes some of the oldest rows up to last and returns how many.
func (f *file) remove(ctx context.Context, last int64) (n int64, err error) {
	err = f.inTransaction(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		for _, table := range []string{"rows", "recent"} {
			done, err := f.conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE seq IN (SELECT seq FROM "+table+" WHERE seq <= ? ORDER BY seq LIMIT 1000)", last)
			if err != nil {
				return err
			}
			if n, err = done.RowsAffected(); n > 0 || err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
