package pgstore

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"codemode-bridge/bridge/ledger"
)

const (
	// checkedTail is how many rows are checked before a store is used; the rest are
	// checked while it is in use.
	checkedTail   = 5_000
	mostSinceMark = 50_000 // rows that an opening reads at most
	chunkRows     = 2_000  // rows that are read at a time
)

// fromServer reports whether an error is the database's or the connection's.
func fromServer(err error) bool {
	var pg *pgconn.PgError
	var connecting *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &pg) || errors.As(err, &connecting) || errors.As(err, &network) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// check looks at the end of the store before it is used: the last rows, the mark, and
// the newest checkpoint of the second place.
func (db *DB) check(ctx context.Context, conn *pgx.Conn) error {
	last, _, err := readHead(conn.QueryRow(ctx, headQuery)) // the scan below checks its seal
	if err != nil {
		return classed(err)
	}
	apart, err := ledger.LastCheckpoint(db.o.CheckpointFile, db.o.Logger)
	if err != nil {
		return err
	}
	var against []ledger.Checkpoint
	switch {
	case apart == nil:
	case apart.Store != db.id:
		if err := follows(ctx, conn, apart.Store); err != nil {
			return err
		}
	case apart.Seq > last.seq-checkedTail:
		against = append(against, *apart)
	case !apart.SignedWith(db.key):
		return ledger.Damaged("the last checkpoint in %s is not signed with its key", db.o.CheckpointFile)
	default:
		if err := has(ctx, conn, head{apart.Seq, apart.Hash}); err != nil {
			return err
		}
	}
	mark, err := lastMark(ctx, conn, db.id, db.key)
	if err != nil {
		return err
	}
	from := last.seq - checkedTail
	if mark != nil {
		if err := has(ctx, conn, head{mark.Seq, mark.Hash}); err != nil {
			return err
		}
		from = min(from, max(mark.Seq, last.seq-mostSinceMark))
	}
	first, before, err := verifier{db}.beginning(ctx, conn)
	if err != nil {
		return err
	}
	part := portion{after: max(0, first-1), prev: before}
	if from >= first {
		row, err := rowAt(ctx, conn, from)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) { // the scan finds it missing
			return err
		}
		if part = (portion{after: from}); err == nil {
			part.prev = &row.Hash
		}
	}
	report, err := scan(ctx, conn, db.id, db.key, part, against)
	if err == nil && !report.Whole {
		err = ledger.Damaged("%s", report.Message)
	}
	if err == nil && from < first {
		db.whole = wall()
	}
	if err == nil {
		err = verifier{db}.stillBad(ctx, conn)
	}
	if err == nil {
		db.known = last
	}
	return err
}

// recheck checks on a new connection that the store is the one that this process knows.
func (db *DB) recheck(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, db.o.Patience)
	defer cancel()
	there, err := db.o.there(ctx, conn)
	if err != nil {
		return err
	}
	if !there {
		return ledger.Damaged("its tables are gone from %s", Where(db.o.URL))
	}
	if has, oldest, err := versions(ctx, conn); err != nil {
		return err
	} else if oldest > version {
		return unavailable("%w", newer(has, oldest))
	}
	var id string
	if err := conn.QueryRow(ctx, "SELECT coalesce(max(value), '') FROM meta WHERE name = 'store'").Scan(&id); err != nil {
		return classed(err)
	}
	if id != db.id {
		return ledger.Damaged("another store is in %s: start codemode-bridge again", Where(db.o.URL))
	}
	return has(ctx, conn, db.known)
}

// has checks that a row that once existed still does, or was pruned.
func has(ctx context.Context, from querier, m head) error {
	if m.seq == 0 {
		return nil
	}
	var hash []byte
	err := from.QueryRow(ctx, "SELECT hash FROM log WHERE seq = $1", m.seq).Scan(&hash)
	switch {
	case err == nil && string(hash) != string(m.hash[:]):
		return ledger.Damaged("row %d is not the one that was written", m.seq)
	case err == nil:
		return nil
	case !errors.Is(err, pgx.ErrNoRows):
		return classed(err)
	}
	first, err := lowest(ctx, from)
	if err == nil && first <= m.seq {
		err = ledger.Damaged("row %d is missing: the end was cut off, or the database is an older copy", m.seq)
	}
	return err
}

// follows checks that this store was begun when the one of a checkpoint was set aside.
func follows(ctx context.Context, from querier, store string) error {
	var body string
	err := from.QueryRow(ctx, "SELECT body FROM log WHERE seq = 1").Scan(&body)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return classed(err)
	}
	var rec struct {
		Event  ledger.Event
		Detail struct{ Store string }
	}
	if json.Unmarshal([]byte(body), &rec) != nil || rec.Event != ledger.Repaired || rec.Detail.Store != store {
		return ledger.Damaged("the last checkpoint of the second place is of another log")
	}
	return nil
}

// lowest returns the number of the first row; 0 if there is none.
func lowest(ctx context.Context, from querier) (first int64, err error) {
	err = from.QueryRow(ctx, "SELECT coalesce(min(seq), 0) FROM log").Scan(&first)
	return first, classed(err)
}

// lastMark returns the mark, a checkpoint that is kept in the transaction that writes
// its row; nil if there is none.
func lastMark(ctx context.Context, from querier, id string, key []byte) (*ledger.Checkpoint, error) {
	var line string
	err := from.QueryRow(ctx, "SELECT value FROM meta WHERE name = 'mark'").Scan(&line)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, classed(err)
	}
	mark, err := ledger.ParseCheckpoint(line)
	if err != nil || mark.Store != id || !mark.SignedWith(key) {
		return nil, ledger.Damaged("its mark was changed: it is not signed with its key")
	}
	return &mark, nil
}

// beginning returns the number of the first row, and the hash that the row before it
// had; nil if a removal of rows that was interrupted leaves that unknown. A log that does
// not begin with row 1 is damaged unless a row says that those before were pruned.
func (db verifier) beginning(ctx context.Context, from querier) (first int64, before *ledger.Hash, err error) {
	if first, err = lowest(ctx, from); err != nil || first <= 1 {
		return first, &ledger.Hash{}, err
	}
	gone, err := db.pruned(ctx, from)
	switch {
	case err != nil:
		return 0, nil, err
	case gone.Last < first-1:
		return 0, nil, ledger.Damaged("rows %d to %d are missing, and nothing says that they were pruned", gone.Last+1, first-1)
	case gone.Last > first-1:
		return first, nil, nil
	}
	row, err := rowAt(ctx, from, first)
	if errors.Is(err, pgx.ErrNoRows) { // pruned meanwhile
		return first, nil, nil
	}
	if err == nil && ledger.HashRow(db.id, first, gone.Hash, row.Body) != row.Hash {
		err = ledger.Damaged("row %d does not follow the last pruned one", first)
	}
	return first, &gone.Hash, err
}

// pruned returns what the last row about it says was removed. The row must be one that a
// bridge wrote.
func (db verifier) pruned(ctx context.Context, from querier) (gone ledger.Removal, err error) {
	var seq int64
	err = from.QueryRow(ctx, "SELECT seq FROM log WHERE event = 'pruned' ORDER BY seq DESC LIMIT 1").Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return gone, nil
	}
	if err != nil {
		return gone, classed(err)
	}
	row, err := rowAt(ctx, from, seq)
	if err != nil {
		return gone, err
	}
	var rec struct{ Detail ledger.Removal }
	if err := json.Unmarshal(row.Body, &rec); err != nil {
		return gone, ledger.Damaged("row %d, which says what was pruned, cannot be read: %v", seq, err)
	}
	prev := rec.Detail.Hash // if it went up to the row before this one
	if before, err := rowAt(ctx, from, seq-1); err == nil {
		prev = before.Hash
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return gone, err
	}
	seal := ledger.NewKeyring(db.id, db.key).Seal(seq, row.Hash)
	if !hmac.Equal(seal[:], row.Seal[:]) || ledger.HashRow(db.id, seq, prev, row.Body) != row.Hash {
		return gone, ledger.Damaged("row %d, which says what was pruned, was edited", seq)
	}
	return rec.Detail, nil
}

// A portion is which rows a scan reads: those after a number.
type portion struct {
	after int64
	prev  *ledger.Hash // of row after, which is known to be right; nil if it is not known
	most  int64        // how many rows; 0 for all
}

// scan checks a portion of the rows, and that they are found by what they say.
func scan(ctx context.Context, from querier, store string, key []byte, part portion, against []ledger.Checkpoint) (ledger.Report, error) {
	checker := ledger.NewChecker(store, key, against...)
	if part.prev != nil {
		checker.After(part.after, *part.prev)
	}
	for after, read := part.after, int64(0); ; {
		size := int64(chunkRows)
		if part.most > 0 {
			size = min(size, part.most-read)
		}
		n, last, more, err := scanChunk(ctx, from, checker, after, size)
		if err != nil {
			return ledger.Report{}, reading(err)
		}
		after, read = last, read+n
		if !more || n < size || part.most > 0 && read >= part.most {
			return checker.Report(), nil
		}
	}
}

// scanChunk adds rows to a checker, and reports whether it needs more.
func scanChunk(ctx context.Context, from querier, checker *ledger.Checker, after, size int64) (n, last int64, more bool, err error) {
	found, err := from.Query(ctx, "SELECT seq, hash, seal, body, time, run, event, tool, disposition, outcome, risk, people FROM log WHERE seq > $1 ORDER BY seq LIMIT $2", after, size)
	if err != nil {
		return 0, 0, false, err
	}
	defer found.Close()
	for last = after; found.Next(); n++ {
		var l ledger.Link
		var hash, seal []byte
		var body string
		var c columns
		if err := found.Scan(&l.Seq, &hash, &seal, &body, &c.time, &c.run, &c.event, &c.tool, &c.disposition, &c.outcome, &c.risk, &c.people); err != nil {
			return n, last, false, err
		}
		l.Body, last = []byte(body), l.Seq
		copy(l.Hash[:], hash)
		copy(l.Seal[:], seal)
		if want, err := columnsOf(l.Body); err == nil && want != c {
			l.Body = append(l.Body, " (its columns say something else)"...) // it would not be found
		}
		if !checker.Add(l) {
			return n, last, false, nil
		}
	}
	return n, last, true, found.Err()
}

// Verify reads every row, and compares the columns that rows are searched by with what
// the rows say. See ledger.Store.
func (db *DB) Verify(ctx context.Context, against *ledger.Checkpoint) (report ledger.Report, err error) {
	var signed []ledger.Checkpoint
	if against != nil {
		signed = append(signed, *against)
	}
	apart, err := ledger.ReadCheckpoints(db.o.CheckpointFile, db.o.Logger)
	if err != nil {
		return report, err
	}
	for _, c := range apart {
		if c.Store == db.id {
			signed = append(signed, c)
		}
	}
	err = db.snapshot(ctx, func(t pgx.Tx) error {
		mark, err := lastMark(ctx, t, db.id, db.key)
		if errors.Is(err, ledger.ErrDamaged) {
			report = ledger.Report{Sealed: true, Kind: ledger.Rewritten, Message: ledger.Reason(err)}
			return nil
		}
		if err != nil {
			return err
		}
		if mark != nil {
			signed = append(signed, *mark)
		}
		report, err = scan(ctx, t, db.id, db.key, portion{}, signed)
		return err
	})
	if errors.Is(err, ledger.ErrDamaged) {
		return ledger.Report{Sealed: true, Kind: ledger.Unreadable, Message: ledger.Reason(err)}, nil
	}
	return report, err
}

// wall is the time of day, which also passes while the machine sleeps.
func wall() time.Time { return time.Now().UTC().Round(0) }
