package sqlstore

import (
	"context"
	"os"

	"codemode-bridge/bridge/ledger"
)

// add writes a batch in one transaction, except for the items that are refused.
// After an error the file must not be used.
func (f *file) add(ctx context.Context, path string, batch []*ledger.Item, durable bool) error {
	if err := f.synchronous(ctx, durable); err != nil {
		return err
	}
	seq, hash := f.seq, f.hash
	err := f.inTransaction(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		seq, hash = f.seq, f.hash
		for _, it := range batch {
			it.Refused = nil
			if err := f.admit(ctx, it); err != nil {
				return err
			}
			if it.Refused != nil {
				continue
			}
			for _, body := range it.Bodies {
				seq++
				hash = ledger.HashRow(f.id, seq, hash, body)
				seal := f.ring.Seal(seq, hash)
				if err := one(f.run(ctx, "INSERT INTO recent (seq, hash, seal, body) VALUES (?, ?, ?, ?)", seq, hash[:], seal[:], string(body))); err != nil {
					return err
				}
			}
		}
		return verifier{f}.mark(ctx, seq, hash)
	})
	if err != nil {
		return err
	}
	f.seq, f.hash = seq, hash
	if f.wal == nil {
		f.wal, err = os.Stat(path + "-wal")
	}
	return err
}

// addEntries writes the entries of an item, all or none, in the open transaction.
// If they are refused, none is written and the item says so.
func (f *file) addEntries(ctx context.Context, it *ledger.Item) (err error) {
	if len(it.Journal) == 0 {
		return nil
	}
	moot, written := ledger.Moot(it.Journal), 0
	for _, is := range moot {
		if !is {
			written++
		}
	}
	all := func() error {
		for i := range it.Journal {
			if err := f.addEntry(ctx, &it.Journal[i], it.At, moot[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if written == 1 { // the last: what any is refused for is found before anything is written
		err = all()
	} else {
		if err := f.exec(ctx, "SAVEPOINT item"); err != nil {
			return err
		}
		err = all()
		if ledger.RefusedFor(err) != nil {
			clear(f.journals)
			if err := f.exec(ctx, "ROLLBACK TO item"); err != nil {
				return err
			}
		}
		if err := f.exec(ctx, "RELEASE item"); err != nil {
			return err
		}
	}
	if no := ledger.RefusedFor(err); no != nil {
		it.Refused, err = no, nil
	}
	return err
}

// synchronous sets whether a commit syncs the disk.
func (f *file) synchronous(ctx context.Context, durable bool) error {
	level := "NORMAL"
	if durable {
		level = "FULL"
	}
	if f.sync == level {
		return nil
	}
	f.sync = level
	return once(ctx, f, "PRAGMA synchronous = "+level)
}

// compact moves up to n of the oldest rows from recent to rows and reports whether
// more are left.
func (f *file) compact(ctx context.Context, n int) (more bool, err error) {
	if err := f.synchronous(ctx, false); err != nil {
		return false, err
	}
	err = f.inTransaction(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		err := f.exec(ctx, "INSERT INTO rows (seq, hash, seal, body) SELECT seq, hash, seal, body FROM recent ORDER BY seq LIMIT ?", n)
		if err == nil {
			err = f.exec(ctx, "DELETE FROM recent WHERE seq <= (SELECT max(seq) FROM rows)")
		}
		if err == nil {
			err = f.get(ctx, lastCompacted, nil, &f.compacted)
		}
		return err
	})
	return f.compacted < f.seq, err
}

// resync copies the content of the write-ahead log to the file and syncs it, so
// that a write whose sync failed is repeated.
func (f *file) resync(ctx context.Context) error {
	if err := f.synchronous(ctx, true); err != nil {
		return err
	}
	var busy, pages, copied int
	if err := f.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(FULL)").Scan(&busy, &pages, &copied); err != nil {
		return err
	}
	if busy != 0 {
		return unavailable("an earlier write is not yet safe: somebody else is reading")
	}
	return nil
}

// copyWAL copies the content of the write-ahead log to the file, as far as nobody
// else is reading an older state. It waits for nobody. The last to close removes
// the -wal, but a process that only reads cannot; after copyWAL the rows are in
// the file even then.
func (f *file) copyWAL(ctx context.Context) error {
	return once(ctx, f, "PRAGMA wal_checkpoint(PASSIVE)")
}
