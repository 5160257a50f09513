package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"codemode-bridge/bridge/ledger"
)

// schema5 adds how often grants were used: each use is counted in the transaction
// that has the record of its call.
const schema5 = `CREATE TABLE uses (
	name TEXT PRIMARY KEY,   -- the grant's id
	used INTEGER NOT NULL,
	last INTEGER NOT NULL    -- unix nanoseconds of the last use
);
`

// admit writes what belongs to an item's record: its entries, and the use of a
// grant. If the item is refused, nothing of it is written and it says so.
func (f *file) admit(ctx context.Context, it *item) error {
	if it.uses > 0 {
		switch used, err := f.used(ctx, it.grant); {
		case err != nil:
			return err
		case used >= it.uses:
			it.refused = ledger.ErrUsedUp
			return nil
		}
	}
	if err := f.addEntries(ctx, it); err != nil || it.refused != nil || it.uses == 0 {
		return err
	}
	return f.exec(ctx, "INSERT INTO uses (name, used, last) VALUES (?, 1, ?) ON CONFLICT (name) DO UPDATE SET used = used + 1, last = excluded.last",
		it.grant, nanos(it.at))
}

// used returns how often a grant was used.
func (f *file) used(ctx context.Context, grant string) (n int, err error) {
	err = f.conn.QueryRowContext(ctx, "SELECT used FROM uses WHERE name = ?", grant).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// keepUses is how long the count of a grant is kept at least: longer than any grant
// holds.
const keepUses = 7 * 24 * time.Hour

// forgetUses removes the counts of grants that were last used before a time, and no
// longer hold.
func (f *file) forgetUses(ctx context.Context, before, now time.Time) error {
	if over := now.Add(-keepUses); over.Before(before) {
		before = over
	}
	return f.exec(ctx, "DELETE FROM uses WHERE last < ?", nanos(before))
}
