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

// admit writes what belongs to an item's records: their entries, and the uses of
// grants. If the item is refused, nothing of it is written and it says so.
func (f *file) admit(ctx context.Context, it *ledger.Item) error {
	wanted := make(map[string]int)
	for _, u := range it.Uses {
		switch used, err := f.used(ctx, u.Grant); {
		case err != nil:
			return err
		case used+wanted[u.Grant] >= u.Most:
			it.Refused = ledger.ErrUsedUp
			return nil
		}
		wanted[u.Grant]++
	}
	if err := f.addEntries(ctx, it); err != nil || it.Refused != nil {
		return err
	}
	for _, u := range it.Uses {
		err := f.exec(ctx, "INSERT INTO uses (name, used, last) VALUES (?, 1, ?) ON CONFLICT (name) DO UPDATE SET used = used + 1, last = excluded.last",
			u.Grant, ledger.Nanos(it.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// used returns how often a grant was used.
func (f *file) used(ctx context.Context, grant string) (n int, err error) {
	err = f.get(ctx, "SELECT used FROM uses WHERE name = ?", []any{grant}, &n)
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
	return f.exec(ctx, "DELETE FROM uses WHERE last < ?", ledger.Nanos(before))
}
