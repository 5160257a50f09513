package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"codemode-bridge/bridge/ledger"
)

const (
	// runsQuery has places for the expressions for a run's configuration and lease.
	runsQuery = "SELECT number, run, owner, wanted, state, began, until, shared, coalesce(total, 0), %s, %s" + journalsWithLast
	whoseRun  = "coalesce((SELECT c.id FROM configurations AS c WHERE c.journal = number), '')"
)

// changing runs change in a transaction of the writing goroutine. If change
// returns a refusal everything is left as it was.
func (db *DB) changing(ctx context.Context, change func(context.Context, *file) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var no error
	err := db.ask(ctx, func(ctx context.Context, f *file) error {
		if err := f.synchronous(ctx, db.o.AllDurable); err != nil {
			return err
		}
		return f.inTransaction(ctx, func() error {
			if err := f.refresh(ctx); err != nil {
				return err
			}
			err := change(ctx, f)
			if no = ledger.RefusedFor(err); no != nil { // nothing was written
				return nil
			}
			return err
		})
	})
	if err == nil && no == nil {
		db.notify()
	}
	if err == nil {
		err = no
	}
	return err
}

// ChangeRun changes a run. See ledger.Journal.
func (db *DB) ChangeRun(ctx context.Context, run string, change func(*ledger.JournaledRun) error) (k ledger.JournaledRun, err error) {
	err = db.changing(ctx, func(ctx context.Context, f *file) error {
		all, err := readRuns(ctx, f.conn, " WHERE run = ?", run)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ledger.Refuse(fmt.Errorf("changing run %s: %w", run, ledger.ErrNoJournal))
		}
		if k, err = all[0].Change(change); err != nil {
			return ledger.Refuse(err)
		}
		delete(f.journals, run)
		if k.Lease != all[0].Lease {
			if err := f.setLease(ctx, all[0].number, k.Lease); err != nil {
				return err
			}
		}
		return one(f.run(ctx, "UPDATE journals SET owner = ?, wanted = ?, state = ?, until = ? WHERE run = ?",
			k.Owner, ledger.LeaseRequest(&k), k.State, ledger.Nanos(k.Until), run))
	})
	return k, err
}

// Drop removes a run's journal. See ledger.Journal.
func (db *DB) Drop(ctx context.Context, run string) error {
	return db.changing(ctx, func(ctx context.Context, f *file) error {
		j, err := f.journal(ctx, run)
		if err != nil || j == nil {
			return err
		}
		return f.dropJournal(ctx, j)
	})
}

// A journaledRun is a row of journals.
type journaledRun struct {
	ledger.JournaledRun
	number int64
	shared string
}

// readRuns reads rows of journals, the oldest first.
func readRuns(ctx context.Context, c *sql.Conn, where string, args ...any) ([]journaledRun, error) {
	whose := whoseRun
	var has int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return nil, err
	}
	lease := leaseOfRun
	if has < 3 { // opened to be read only, as an older release left it
		whose = "''"
	}
	if has < 4 {
		lease = "0"
	}
	rows, err := c.QueryContext(ctx, fmt.Sprintf(runsQuery, whose, lease)+where+" ORDER BY number", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []journaledRun
	for rows.Next() {
		var k journaledRun
		var began, until int64
		var wanted string
		if err := rows.Scan(&k.number, &k.Run, &k.Owner, &wanted, &k.State, &began, &until, &k.shared, &k.Bytes, &k.Configuration, &k.Lease); err != nil {
			return nil, err
		}
		ledger.ReadLeaseRequest(&k.JournaledRun, wanted)
		k.Began, k.Until = ledger.Moment(began), ledger.Moment(until)
		all = append(all, k)
	}
	return all, rows.Err()
}

// snapshot has read see one consistent state of the journals, whoever writes. A
// file that no release with journals has written is not read: it has none.
func (db *DB) snapshot(ctx context.Context, read func(*file, *sql.Conn) error) error {
	f, err := db.reading()
	if err != nil {
		return err
	}
	c, err := f.read.Conn(ctx)
	if err != nil {
		return fmt.Errorf("reading journals: %w", err)
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("reading journals: %w", err)
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	var has int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil || has < 2 {
		return err
	}
	return read(f, c)
}

// runs returns the journals that where selects.
func (db *DB) runs(ctx context.Context, where string, args ...any) ([]ledger.JournaledRun, error) {
	var all []ledger.JournaledRun
	err := db.snapshot(ctx, func(_ *file, c *sql.Conn) error {
		found, err := readRuns(ctx, c, where, args...)
		if err != nil {
			return fmt.Errorf("reading journals: %w", err)
		}
		for _, k := range found {
			all = append(all, k.JournaledRun)
		}
		return nil
	})
	return all, err
}

// Runs returns all runs that have a journal. See ledger.Journal.
func (db *DB) Runs(ctx context.Context) ([]ledger.JournaledRun, error) {
	return db.runs(ctx, " WHERE NOT "+isDropped)
}

// LeaseRequests returns the runs that their owner is requested to hand over or
// end. See ledger.Journal.
func (db *DB) LeaseRequests(ctx context.Context, owner string) ([]ledger.JournaledRun, error) {
	return db.runs(ctx, " WHERE owner = ? AND wanted <> ''", owner)
}

// Read returns a run with its entries. See ledger.Journal.
func (db *DB) Read(ctx context.Context, run string) (k ledger.JournaledRun, entries []ledger.JournalEntry, err error) {
	found := false
	err = db.snapshot(ctx, func(f *file, c *sql.Conn) error {
		all, err := readRuns(ctx, c, " WHERE run = ?", run)
		if err != nil || len(all) == 0 {
			return err
		}
		found, k = true, all[0].JournaledRun
		entries, err = f.readEntries(ctx, c, &all[0])
		return err
	})
	if err == nil && !found {
		err = ledger.ErrNoJournal
	}
	if err != nil {
		return ledger.JournaledRun{}, nil, fmt.Errorf("reading the journal of run %s: %w", run, err)
	}
	return k, entries, nil
}

// readEntries decrypts the entries of a journal.
func (f *file) readEntries(ctx context.Context, c *sql.Conn, k *journaledRun) ([]ledger.JournalEntry, error) {
	if f.key == nil {
		return nil, damaged("its key cannot be read")
	}
	seal, err := ledger.JournalCipher(f.key, k.Run)
	if err != nil {
		return nil, err
	}
	var common, hash []byte
	if k.shared != "" {
		err := c.QueryRowContext(ctx, "SELECT body FROM shared WHERE name = ?", k.shared).Scan(&common)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, damaged("the bytes %q that it shares with others are missing", k.shared)
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(common)
		hash = sum[:]
	}
	rows, err := c.QueryContext(ctx, "SELECT id, kind, call, total, body FROM entries WHERE id > ? AND id < ? ORDER BY id",
		k.number<<placeBits, (k.number+1)<<placeBits)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []ledger.JournalEntry
	for place, bytes := int64(1), int64(0); rows.Next(); place++ {
		e := ledger.JournalEntry{Run: k.Run}
		var id, total int64
		var body sql.RawBytes
		if err := rows.Scan(&id, &e.Kind, &e.Call, &total, &body); err != nil {
			return nil, err
		}
		var with []byte
		if place == 1 {
			e.Shared, e.Common, with = k.shared, common, hash
		}
		e.Body, err = seal.Open(nil, nil, body, ledger.Binding(&e, place, with))
		bytes += int64(len(e.Body))
		if err != nil || id&placeMask != place || total != bytes || (place == 1) != (e.Kind == ledger.Began) {
			return nil, damaged("its entry %d is not what was written", place)
		}
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, damaged("its entries are missing")
	}
	return entries, nil
}
