package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"codemode-bridge/bridge/ledger"
)

const (
	// dropAtOnce is how many entries a journal has at most that is dropped in the transaction that ends its run.
	dropAtOnce = 32
	// mostDropped is how many entries of dropped journals may be left before they are removed even under load.
	mostDropped = 20_000

	// isDropped selects journals that nobody has any more, of which entries are left. Each has been renamed,
	// and is over since before there were any, so that an older release, which does not know this, drops it too.
	isDropped = "until = 1"
)

// What ended runs left in the file.
type leftovers struct {
	orphans bool  // there may be shared bytes that no journal names
	dropped int64 // entries of dropped journals, about; 0 if there are none
}

// A remover removes what dropped journals left.
type remover struct{ *file }

// dropJournal removes a journal. Of a long one only the beginning is done, after which nobody finds it, and
// the rest is left to [remover.remove]: to remove a thousand entries takes as long as a hundred
// calls do. Bytes that it shares with others are left to sweep.
func (f *file) dropJournal(ctx context.Context, j *journal) error {
	delete(f.journals, j.run)
	f.orphans = true
	if j.place > dropAtOnce {
		f.dropped += j.place
		return one(f.run(ctx, "UPDATE journals SET run = ?, owner = '', wanted = '', state = ?, until = 1, shared = '' WHERE number = ?",
			fmt.Sprintf("dropped %d", j.number), ledger.Finished, j.number))
	}
	if err := f.exec(ctx, "DELETE FROM entries WHERE id > ? AND id < ?", j.number<<placeBits, (j.number+1)<<placeBits); err != nil {
		return err
	}
	return remover{f}.forget(ctx, j.number)
}

// forget removes the row of a journal that has no entries any more.
func (f remover) forget(ctx context.Context, number int64) error {
	if err := f.exec(ctx, "DELETE FROM configurations WHERE journal = ?", number); err != nil {
		return err
	}
	if err := f.exec(ctx, "DELETE FROM leases WHERE journal = ?", number); err != nil {
		return err
	}
	return one(f.run(ctx, "DELETE FROM journals WHERE number = ?", number))
}

// remove removes up to n entries of dropped journals. Nothing may be left of them when it
// has set dropped to 0.
func (f remover) remove(ctx context.Context, n int) error {
	if err := f.synchronous(ctx, false); err != nil {
		return err
	}
	return f.inTransaction(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		number, err := f.number(ctx, "SELECT number FROM journals WHERE "+isDropped+" LIMIT 1")
		if errors.Is(err, sql.ErrNoRows) {
			f.dropped = 0
			return nil
		}
		if err != nil {
			return err
		}
		done, err := f.run(ctx, "DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE id > ? AND id < ? ORDER BY id DESC LIMIT ?)",
			number<<placeBits, (number+1)<<placeBits, n)
		if err != nil {
			return err
		}
		removed, err := done.RowsAffected()
		if err != nil {
			return err
		}
		f.dropped = max(1, f.dropped-removed) // until none is found: another process may have left some
		if removed < int64(n) {
			return f.forget(ctx, number)
		}
		return nil
	})
}

// removeAll removes what is left of dropped journals.
func (f remover) removeAll(ctx context.Context) error {
	for f.dropped > 0 {
		if err := f.remove(ctx, mostDropped); err != nil {
			return err
		}
	}
	return nil
}
