package recorder

import (
	"context"
	"errors"
	"time"

	"codemode-bridge/bridge/ledger"
)

// PruneHourly removes records older than age and all but the newest rows, now and every
// hour until ctx ends. Zero is no limit.
func (r *Recorder) PruneHourly(ctx context.Context, age time.Duration, rows int) {
	if r.store == nil || age <= 0 && rows <= 0 {
		return
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		n, err := r.prune(ctx, age, rows)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.Error("removing old records (audit.keep, audit.keepRows)", "err", err)
		case n > 0:
			r.log.Info("old records were removed (audit.keep, audit.keepRows)", "rows", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune does that once, and returns how many rows it removed.
func (r *Recorder) prune(ctx context.Context, age time.Duration, rows int) (n int64, err error) {
	var before time.Time
	if rows > 0 {
		before, err = TimeOfNewest(ctx, r.store, int64(rows))
	}
	if oldest := time.Now().Add(-age); age > 0 && oldest.After(before) {
		before = oldest
	}
	if before.IsZero() {
		return 0, err
	}
	n, failed := r.store.Prune(ctx, before)
	return n, errors.Join(err, failed)
}

// TimeOfNewest returns the time of the oldest of the newest n rows, so that what is
// before it can be pruned; zero if there are no more than n.
func TimeOfNewest(ctx context.Context, store ledger.Store, n int64) (time.Time, error) {
	last, _, err := store.Head(ctx)
	if err != nil || last <= n {
		return time.Time{}, err
	}
	for row, err := range store.Rows(ctx, ledger.Query{After: last - n, Limit: 1}) {
		return row.Record.Time, err
	}
	return time.Time{}, nil
}
