package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"codemode-bridge/bridge/ledger"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// comparedRows is the number of rows up to which Verify has SQLite compare every
	// index with the rows, which takes ten times as long as everything else.
	comparedRows = 20_000

	checkAgain = time.Minute // after a background check that could not be made
)

// Verify reads every row; a store of a million takes some seconds.
func (db *DB) Verify(ctx context.Context, against *ledger.Checkpoint) (ledger.Report, error) {
	f, err := db.reading()
	if err != nil {
		if errors.Is(err, ledger.ErrDamaged) {
			return ledger.Report{Kind: ledger.Unreadable, Message: reason(err)}, nil
		}
		return ledger.Report{}, err
	}
	return f.verify(ctx, &db.o, against)
}

func (f *file) verify(ctx context.Context, o *Options, against *ledger.Checkpoint) (ledger.Report, error) {
	var signed []ledger.Checkpoint
	if against != nil {
		signed = append(signed, *against)
	}
	kept, err := readCheckpoints(o)
	if err != nil {
		return ledger.Report{}, err
	}
	for _, c := range kept {
		if c.Store == f.id {
			signed = append(signed, c)
		}
	}
	c, err := f.read.Conn(ctx)
	if err != nil {
		return ledger.Report{}, fmt.Errorf("reading the audit log: %w", err)
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil { // one state of the store, whoever writes
		return ledger.Report{}, fmt.Errorf("reading the audit log: %w", err)
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	report, err := scan(ctx, c, f.id, f.key, 0, signed)
	if err != nil || !report.Whole {
		return report, err
	}
	if report.Rows > comparedRows {
		return report, nil
	}
	switch err := sound(ctx, c, "integrity_check"); {
	case errors.Is(err, ledger.ErrDamaged) || code(err) == sqlite3.SQLITE_CORRUPT:
		report.Whole, report.Kind = false, ledger.Unreadable
		report.Message = "every row is right, but not the file around them: " + reason(err)
	case err != nil:
		return report, fmt.Errorf("reading the audit log: %w", err)
	}
	return report, nil
}

// checkBehind checks the rows of f that were not checked when it was opened, in
// a goroutine that ends with f.
func (db *DB) checkBehind(ctx context.Context, f *file) {
	db.stopCheck()
	if db.o.ReadOnly || f.seq <= checkedTail && f.info.Size() <= smallFile {
		return
	}
	ctx, db.stopCheck = context.WithCancel(ctx)
	db.behind.Go(func() { db.checkUntilDone(ctx, f) })
}

// checkUntilDone verifies the whole file, trying again until that is possible.
func (db *DB) checkUntilDone(ctx context.Context, f *file) {
	for {
		err := db.checkAll(ctx, f)
		if err == nil || ctx.Err() != nil {
			return
		}
		db.o.Logger.Error("the old rows of the audit log could not be checked", "error", err, "again in", checkAgain)
		select {
		case <-time.After(checkAgain):
		case <-ctx.Done():
			return
		}
	}
}

// checkAll verifies the whole file. The error says why that was not possible;
// damage that it finds is remembered.
func (db *DB) checkAll(ctx context.Context, f *file) error {
	report, err := f.verify(ctx, &db.o, nil)
	if err == nil && !report.Whole {
		err = damaged("%s", report.Message)
	}
	if !errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if os.SameFile(db.file.info, f.info) { // otherwise it is about a file that was set aside
		db.o.Logger.Error("calls are refused", "error", err)
		db.hiddenFault = fault{err, time.Now(), f.info}
	}
	return nil
}
