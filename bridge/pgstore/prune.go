package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/ledger"
)

// Prune removes old rows. A kill or ctx may interrupt it without harm: the next Prune
// removes the rest.
func (db *DB) Prune(ctx context.Context, before time.Time) (int64, error) {
	var gone ledger.Removal
	if err := db.ask(ctx, func(ctx context.Context, t *tx) (err error) {
		over := db.o.Clock().Add(-keepUses)
		if before.Before(over) {
			over = before
		}
		var old int64
		if err := t.conn.QueryRow(ctx, "SELECT count(*) FROM uses WHERE last < $1", ledger.Nanos(over)).Scan(&old); err != nil {
			return err
		}
		if old > 0 {
			t.queue(-1, "DELETE FROM uses WHERE last < $1", ledger.Nanos(over))
		}
		gone, err = t.older(ctx, before)
		return err
	}); err != nil || gone.Rows == 0 {
		return 0, err
	}
	if err := db.Record(ctx, gone.Record()); err != nil {
		return 0, err
	}
	removed := int64(0)
	for removed < gone.Rows {
		n := int64(0)
		err := db.ask(ctx, func(ctx context.Context, t *tx) error {
			// It is executed here, not at the end, to know how many rows it removed.
			tag, err := t.conn.Exec(ctx, "DELETE FROM log WHERE seq IN (SELECT seq FROM log WHERE seq <= $1 ORDER BY seq LIMIT 1000)", gone.Last)
			if n = tag.RowsAffected(); n > 0 {
				t.queue(-1, "SELECT 1") // so that it is committed
			}
			return err
		})
		if removed += n; err != nil || n == 0 {
			return removed, err
		}
	}
	return removed, nil
}

// keepUses is how long the count of a grant is kept at least: longer than any grant
// holds.
const keepUses = 7 * 24 * time.Hour

// older returns what Prune is to remove.
func (t *tx) older(ctx context.Context, before time.Time) (gone ledger.Removal, err error) {
	err = t.conn.QueryRow(ctx, "SELECT seq - 1 FROM log WHERE time >= $1 ORDER BY seq LIMIT 1", ledger.Sortable(before)).Scan(&gone.Last)
	if errors.Is(err, pgx.ErrNoRows) {
		gone.Last, err = t.seq, nil
	}
	if err != nil {
		return gone, err
	}
	var hash []byte
	err = t.conn.QueryRow(ctx, "SELECT hash FROM log WHERE seq = $1", gone.Last).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Removal{}, nil // nothing is that old
	}
	if err != nil {
		return gone, err
	}
	copy(gone.Hash[:], hash)
	err = t.conn.QueryRow(ctx, "SELECT count(*) FROM log WHERE seq <= $1", gone.Last).Scan(&gone.Rows)
	return gone, err
}
