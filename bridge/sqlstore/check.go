package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/ledger"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// checkedTail is how many rows are checked before a file is used; the rest are
	// checked while it is in use.
	checkedTail = 5_000
	// smallFile is the size in bytes up to which SQLite's own check of a file's
	// structure is made before it is used, once a day.
	smallFile = 8 << 20
)

// check looks at the end of the store before it is used: the last rows, the
// newest checkpoint of the second place, and what this process remembers.
func (f *file) check(ctx context.Context, o *Options, known *lastSeen, afresh bool) error {
	if _, err := f.readHead(ctx); err != nil { // the scan below checks its seal
		return err
	}
	var err error
	if f.data, err = f.version(ctx); err != nil {
		return err
	}
	f.seen = f.data
	if known != nil {
		if err := f.follows(ctx, *known); err != nil {
			return err
		}
	}
	last, err := lastCheckpoint(o)
	if err != nil {
		return err
	}
	if afresh && f.seq == 0 {
		last = nil // it belongs to the log that was set aside
	}
	var against []ledger.Checkpoint
	if last != nil {
		if last.Store != f.id {
			if err := f.follows(ctx, lastSeen{store: last.Store}); err != nil {
				return damaged("the last checkpoint in %s is of another log", o.CheckpointFile)
			}
		} else if last.Seq > f.seq-checkedTail {
			against = append(against, *last)
		} else if !last.SignedWith(f.key) {
			return damaged("the last checkpoint in %s is not signed with its key", o.CheckpointFile)
		} else if err := f.has(ctx, lastSeen{f.id, last.Seq, last.Hash}); err != nil {
			return err
		}
	}
	from, err := verifier{f}.sinceMark(ctx)
	if err != nil {
		return err
	}
	part := portion{after: from}
	if from > 0 {
		row, err := rowAt(ctx, f.conn, from)
		if err == nil {
			part.prev = &row.Hash
		} else if !errors.Is(err, sql.ErrNoRows) { // pruned, or the scan finds it missing
			return err
		}
		if _, _, err := (verifier{f}).beginning(ctx, f.conn); err != nil {
			return err
		}
	}
	report, err := scan(ctx, f.conn, f.id, f.key, part, against)
	if err == nil && !report.Whole {
		err = damaged("%s", report.Message)
	}
	if err == nil && f.info.Size() <= smallFile { // after the rows, whose check says more
		err = verifier{f}.soundAtStart(ctx, o)
		if from <= 0 {
			f.whole = wall()
		}
	}
	if err == nil {
		err = verifier{f}.stillBad(ctx, o)
	}
	return err
}

// A portion is which rows a scan reads: those after a number, all if that is not
// positive.
type portion struct {
	after int64
	prev  *ledger.Hash // of row after, which is known to be right; nil if it is not known
	most  int          // how many rows; 0 for all
}

// scan checks a portion of the rows.
func scan(ctx context.Context, c *sql.Conn, store string, key []byte, part portion, against []ledger.Checkpoint) (ledger.Report, error) {
	checker := ledger.NewChecker(store, key, against...)
	if part.prev != nil {
		checker.After(part.after, *part.prev)
	}
	most := -1
	if part.most > 0 {
		most = part.most
	}
	rows, err := c.QueryContext(ctx, `SELECT seq, hash, seal, body FROM rows WHERE seq > ?1
		UNION ALL SELECT seq, hash, seal, body FROM recent WHERE seq > ?1 ORDER BY seq LIMIT ?2`, part.after, most)
	if err == nil {
		defer rows.Close()
		var l ledger.Link
		var hash, seal, body sql.RawBytes
		for rows.Next() {
			if err = rows.Scan(&l.Seq, &hash, &seal, &body); err != nil {
				break
			}
			l.Hash, l.Seal, l.Body = ledger.Hash{}, ledger.Seal{}, body
			copy(l.Hash[:], hash)
			copy(l.Seal[:], seal)
			if !checker.Add(l) {
				return checker.Report(), nil
			}
		}
		err = errors.Join(err, rows.Err())
	}
	if code(err) == sqlite3.SQLITE_CORRUPT {
		checker.Unreadable(err)
		err = nil
	}
	if err != nil {
		return ledger.Report{}, fmt.Errorf("reading the audit log: %w", err)
	}
	return checker.Report(), nil
}

// sound makes one of SQLite's own checks of the file's structure.
func sound(ctx context.Context, c *sql.Conn, pragma string) error {
	var said string
	if err := c.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return damaged("%s", strings.ReplaceAll(said, "\n", ": "))
	}
	return nil
}
