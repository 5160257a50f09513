package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"codemode-bridge/bridge/ledger"
)

// reading returns the file for reading, also when it is damaged but readable.
func (db *DB) reading() (*file, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil || db.file.read == nil {
		return nil, db.wrong()
	}
	return db.file, nil
}

// Head returns the last row's number and hash.
func (db *DB) Head(ctx context.Context) (int64, ledger.Hash, error) {
	f, err := db.reading()
	if err != nil {
		return 0, ledger.Hash{}, err
	}
	seq, hash, err := f.last(ctx)
	return seq, hash, err
}

func (f *file) last(ctx context.Context) (seq int64, hash ledger.Hash, err error) {
	var h, seal []byte
	err = f.read.QueryRowContext(ctx, headQuery).Scan(&seq, &h, &seal)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.Hash{}, nil
	}
	if err != nil {
		return 0, ledger.Hash{}, fmt.Errorf("reading the audit log: %w", err)
	}
	copy(hash[:], h)
	return seq, hash, nil
}

// Checkpoint signs the present head.
func (db *DB) Checkpoint(ctx context.Context) (ledger.Checkpoint, error) {
	f, err := db.reading()
	if err == nil && f.key == nil {
		err = damaged("its key cannot be read")
	}
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	seq, hash, err := f.last(ctx)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	c := ledger.Checkpoint{Store: f.id, Seq: seq, Hash: hash, Time: db.o.Clock().UTC()}
	c.Sign(f.key)
	return c, nil
}

// Rows reads in pages, so that a reader who takes his time holds nothing up.
func (db *DB) Rows(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		f, err := db.reading()
		if err != nil {
			yield(ledger.Row{}, err)
			return
		}
		size, found := 100, 0
		if q.Limit > 0 {
			size = min(size, q.Limit)
		}
		for {
			page, more, err := f.page(ctx, q, size)
			if err != nil {
				yield(ledger.Row{}, fmt.Errorf("reading the audit log: %w", err))
				return
			}
			for _, row := range page {
				if !q.Selects(row) {
					continue
				}
				if found++; !yield(row, nil) || found == q.Limit {
					return
				}
			}
			if !more {
				return
			}
			if last := page[len(page)-1].Seq; q.Newest {
				q.Before = last
			} else {
				q.After = last
			}
			size = 2000
		}
	}
}

// page reads up to size rows that q may select, in one state of the store, and
// reports whether there may be more.
func (f *file) page(ctx context.Context, q ledger.Query, size int) (page []ledger.Row, more bool, err error) {
	c, err := f.read.Conn(ctx)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, false, err
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	text, args, err := planned(ctx, c, q, size)
	if err != nil {
		return nil, false, err
	}
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var row ledger.Row
		var hash, body sql.RawBytes
		if err := rows.Scan(&row.Seq, &hash, &body); err != nil {
			return nil, false, err
		}
		copy(row.Hash[:], hash)
		if row.Record, err = ledger.Decode(body); err != nil {
			return nil, false, damaged("row %d: %v", row.Seq, err)
		}
		page = append(page, row)
	}
	return page, len(page) == size, rows.Err()
}
