package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"codemode-bridge/bridge/ledger"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// comparedRows is the number of rows up to which Verify has SQLite compare every
	// index with the rows, which takes ten times as long as everything else.
	comparedRows = 20_000
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
	mark, err := verifier{f}.lastMark(ctx, c)
	if errors.Is(err, ledger.ErrDamaged) {
		return ledger.Report{Sealed: f.key != nil, Kind: ledger.Rewritten, Message: reason(err)}, nil
	}
	if err != nil {
		return ledger.Report{}, fmt.Errorf("reading the audit log: %w", err)
	}
	if mark != nil {
		signed = append(signed, *mark)
	}
	report, err := scan(ctx, c, f.id, f.key, portion{}, signed)
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
