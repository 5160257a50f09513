package sqlstore

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"codemode-bridge/bridge/ledger"
)

const (
	// markEvery is how many rows are written between two marks.
	markEvery = 1_000
	// mostSinceMark is how many rows an opening reads at most, should the newest mark be
	// further behind: a release that makes no marks wrote the rows after it.
	mostSinceMark = 50_000
)

// A verifier verifies parts of a file, and keeps note of how far it has come.
type verifier struct{ *file }

// mark keeps in the table meta which row the log has reached, signed, in the
// transaction that writes the row. Rows that are cut off before it, or written anew
// with right hashes, are found when the log is opened, however long it is.
func (f verifier) mark(ctx context.Context, seq int64, hash ledger.Hash) error {
	if seq-f.marked < markEvery {
		return nil
	}
	c := ledger.Checkpoint{Store: f.id, Seq: seq, Hash: hash, Time: time.Now().UTC()}
	c.Sign(f.key)
	if err := f.exec(ctx, "INSERT OR REPLACE INTO meta (name, value) VALUES ('mark', ?)", c.String()); err != nil {
		return err
	}
	f.marked = seq // if the commit fails, the file is not used again
	return nil
}

// lastMark returns the mark; nil if there is none, as in a short log or one that an
// older release wrote.
func (f verifier) lastMark(ctx context.Context, c *sql.Conn) (*ledger.Checkpoint, error) {
	var text string
	err := c.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'mark'").Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mark, err := ledger.ParseCheckpoint(text)
	if err != nil || mark.Store != f.id || f.key != nil && !mark.SignedWith(f.key) {
		return nil, damaged("its mark was changed: it is not signed with its key")
	}
	return &mark, nil
}

// sinceMark checks the mark, and returns after which row the opening reads the log:
// at least the last checkedTail rows, and those since the mark.
func (f verifier) sinceMark(ctx context.Context) (from int64, err error) {
	mark, err := f.lastMark(ctx, f.conn)
	if err != nil {
		return 0, err
	}
	from = f.seq - checkedTail
	if mark == nil {
		return from, nil
	}
	f.marked = mark.Seq
	return min(from, max(mark.Seq, f.seq-mostSinceMark)), f.has(ctx, lastSeen{f.id, mark.Seq, mark.Hash})
}

// rowQuery reads a row by its number.
const rowQuery = "SELECT hash, seal, body FROM rows WHERE seq = ?1 UNION ALL SELECT hash, seal, body FROM recent WHERE seq = ?1"

// beginning returns the number of the first row, and the hash that the row before it
// had; nil if a removal of rows that was interrupted leaves that unknown. A log that
// does not begin with row 1 is damaged unless a row says that those before were
// pruned. It reads a handful of rows, however long the log is.
func (f verifier) beginning(ctx context.Context, c *sql.Conn) (first int64, before *ledger.Hash, err error) {
	if first, err = lowest(ctx, c); err != nil || first <= 1 {
		return first, &ledger.Hash{}, err
	}
	gone, err := f.pruned(ctx, c, "SELECT seq, body FROM rows WHERE event = 'pruned' ORDER BY seq DESC LIMIT 1")
	if err == nil && gone.Last < first-1 {
		var fresh ledger.Removal
		if fresh, err = f.pruned(ctx, c, `SELECT seq, body FROM recent WHERE substr(body, 1, 17) = '{"event":"pruned"' ORDER BY seq DESC LIMIT 1`); fresh.Last > gone.Last {
			gone = fresh
		}
	}
	switch {
	case err != nil:
		return 0, nil, err
	case gone.Last < first-1:
		return 0, nil, damaged("rows %d to %d are missing, and nothing says that they were pruned", gone.Last+1, first-1)
	case gone.Last > first-1:
		return first, nil, nil
	}
	row, err := rowAt(ctx, c, first)
	if errors.Is(err, sql.ErrNoRows) { // pruned meanwhile
		return first, nil, nil
	}
	if err == nil && ledger.HashRow(f.id, first, gone.Hash, row.Body) != row.Hash {
		err = damaged("row %d does not follow the last pruned one", first)
	}
	return first, &gone.Hash, err
}

// lowest returns the number of the first row; 0 if there is none.
func lowest(ctx context.Context, c *sql.Conn) (first int64, err error) {
	err = c.QueryRowContext(ctx, "SELECT coalesce((SELECT min(seq) FROM rows), (SELECT min(seq) FROM recent), 0)").Scan(&first)
	return first, err
}

// pruned returns what the row that query finds says was removed; nothing if it finds
// none. The row must be one that a bridge wrote, unless more is missing than it says.
func (f verifier) pruned(ctx context.Context, c *sql.Conn, query string) (gone ledger.Removal, err error) {
	var seq int64
	var body []byte
	err = c.QueryRowContext(ctx, query).Scan(&seq, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return gone, nil
	}
	if err != nil {
		return gone, err
	}
	row, err := rowAt(ctx, c, seq)
	if err != nil {
		return gone, err
	}
	var rec struct{ Detail ledger.Removal }
	if err := json.Unmarshal(body, &rec); err != nil {
		return gone, damaged("row %d, which says what was pruned, cannot be read: %v", seq, err)
	}
	prev := rec.Detail.Hash // if it went up to the row before this one
	if before, err := rowAt(ctx, c, seq-1); err == nil {
		prev = before.Hash
	} else if !errors.Is(err, sql.ErrNoRows) {
		return gone, err
	} else if rec.Detail.Last < seq-1 { // it is the first row: a later one says what was before it
		return rec.Detail, nil
	}
	seal := ledger.NewKeyring(f.id, f.key).Seal(seq, row.Hash)
	if !hmac.Equal(seal[:], row.Seal[:]) || ledger.HashRow(f.id, seq, prev, body) != row.Hash {
		return gone, damaged("row %d, which says what was pruned, was edited", seq)
	}
	return rec.Detail, nil
}

// rowAt reads one row.
func rowAt(ctx context.Context, c *sql.Conn, seq int64) (l ledger.Link, err error) {
	var hash, seal []byte
	l.Seq = seq
	err = c.QueryRowContext(ctx, rowQuery, seq).Scan(&hash, &seal, &l.Body)
	copy(l.Hash[:], hash)
	copy(l.Seal[:], seal)
	return l, err
}
