package sqlstore

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A file is one opening of the store's file. Only the writing goroutine uses the
// fields that are not marked as for readers.
type file struct {
	id   string // the store's
	key  []byte
	read *sql.DB // for readers

	info       os.FileInfo // of the open file, when it was opened; for everybody
	whole      time.Time   // when opening it read all of it; zero if it did not
	size       int64       // of the file, when it was last looked at
	wal        os.FileInfo // of its -wal; nil until it was written to
	write      *sql.DB
	conn       *sql.Conn            // the only connection of write
	statements map[string]*sql.Stmt // of conn, by their text
	ring       *ledger.Keyring
	sync       string // PRAGMA synchronous of conn

	seq       int64 // the head, as of data
	hash      ledger.Hash
	compacted int64 // the last row of table rows
	marked    int64 // the last row that the mark was seen or set at
	data      int64 // PRAGMA data_version for which the above holds
	seen      int64 // PRAGMA data_version that watchers were told of

	journals map[string]*journal // by run; what is known of them, as of data
	leftovers
}

// A lastSeen is what a process remembers of a store: that it had this row.
type lastSeen struct {
	store string
	seq   int64
	hash  ledger.Hash
}

// version returns what changes when another connection changes the file.
func (f *file) version(ctx context.Context) (v int64, err error) {
	err = f.get(ctx, "PRAGMA data_version", nil, &v)
	return v, err
}

// inTransaction runs do in a transaction that has the write lock.
func (f *file) inTransaction(ctx context.Context, do func() error) error {
	if err := f.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = f.exec(ctx, "COMMIT")
	}
	if err != nil {
		f.exec(context.WithoutCancel(ctx), "ROLLBACK") // the connection is closed if that fails
	}
	return err
}

// statement returns a statement of the connection that writes, which is compiled once: that takes SQLite longer than
// most of them take to be carried out. Its text is one of a few.
func (f *file) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := f.statements[text]; s != nil {
		return s, nil
	}
	s, err := f.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if f.statements == nil {
		f.statements = make(map[string]*sql.Stmt)
	}
	f.statements[text] = s
	return s, nil
}

// run carries out a statement.
func (f *file) run(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s, err := f.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

func (f *file) exec(ctx context.Context, text string, args ...any) error {
	_, err := f.run(ctx, text, args...)
	return err
}

// get reads the one row of a query.
func (f *file) get(ctx context.Context, query string, args []any, into ...any) error {
	s, err := f.statement(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(into...)
}

// once carries out what is not worth keeping: several statements, or a PRAGMA, which SQLite may carry out while it compiles it.
func once(ctx context.Context, f *file, text string) error {
	_, err := f.conn.ExecContext(ctx, text)
	return err
}

func (f *file) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = f.conn.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// same checks that the path still leads to the files that are open, and that none
// of them was shortened; the error says what is wrong.
func (f *file) same(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return unavailable("its file is gone: %v", err)
	case !os.SameFile(info, f.info):
		return unavailable("its file %s was replaced", path)
	case info.Size() < f.size:
		return unavailable("its file %s was shortened", path)
	}
	f.size = info.Size()
	if f.wal != nil {
		wal, err := os.Stat(path + "-wal")
		if err != nil || !os.SameFile(wal, f.wal) || wal.Size() < f.wal.Size() {
			return unavailable("its file %s-wal is gone, was replaced or shortened", path)
		}
		f.wal = wal
	}
	return nil
}

// refresh rereads the head if another connection changed the file, and checks that
// the previous head is still there.
func (f *file) refresh(ctx context.Context) error {
	data, err := f.version(ctx)
	if err != nil || data == f.data {
		return err
	}
	if f.seq > 0 {
		if err := f.has(ctx, lastSeen{f.id, f.seq, f.hash}); err != nil {
			return err
		}
	}
	seal, err := f.readHead(ctx)
	if err != nil {
		return err
	}
	if want := f.ring.Seal(f.seq, f.hash); f.seq > 0 && !hmac.Equal(want[:], seal) {
		return damaged("its last row, %d, was not written by a bridge", f.seq)
	}
	f.data = data
	clear(f.journals)
	return nil
}

// lastCompacted is the last row of table rows.
const lastCompacted = "SELECT coalesce(max(seq), 0) FROM rows"

const headQuery = `SELECT seq, hash, seal FROM (SELECT seq, hash, seal FROM rows ORDER BY seq DESC LIMIT 1)
	UNION ALL SELECT seq, hash, seal FROM (SELECT seq, hash, seal FROM recent ORDER BY seq DESC LIMIT 1)
	ORDER BY seq DESC LIMIT 1`

// readHead sets the head from the file and returns its seal without checking it.
func (f *file) readHead(ctx context.Context) (seal []byte, err error) {
	var hash []byte
	f.seq, f.hash = 0, ledger.Hash{}
	err = f.get(ctx, headQuery, nil, &f.seq, &hash, &seal)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	copy(f.hash[:], hash)
	if err == nil {
		err = f.get(ctx, lastCompacted, nil, &f.compacted)
	}
	return seal, err
}

// has checks that a row that once existed still does, or was pruned.
func (f *file) has(ctx context.Context, m lastSeen) error {
	var hash []byte
	err := f.get(ctx, "SELECT hash FROM rows WHERE seq = ?1 UNION ALL SELECT hash FROM recent WHERE seq = ?1", []any{m.seq}, &hash)
	switch {
	case err == nil && string(hash) != string(m.hash[:]):
		return damaged("row %d is not the one that was written", m.seq)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	first, err := lowest(ctx, f.conn)
	if err == nil && first <= m.seq {
		err = damaged("row %d is missing: the end was cut off, or the file is an older copy", m.seq)
	}
	return err
}

// follows checks that this store is that of m, or was begun when that one was set
// aside.
func (f *file) follows(ctx context.Context, m lastSeen) error {
	if m.store == f.id {
		return f.has(ctx, m)
	}
	var body []byte
	err := f.conn.QueryRowContext(ctx, "SELECT body FROM log WHERE seq = 1").Scan(&body)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var rec struct {
		Event  ledger.Event
		Detail struct{ Store string }
	}
	if json.Unmarshal(body, &rec) != nil || rec.Event != ledger.Repaired || rec.Detail.Store != m.store {
		return damaged("another log stands in its place")
	}
	return nil
}

// one checks that a statement wrote its row: a trigger can swallow it.
func one(done sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return damaged("a row was not kept although the database took it")
	}
	return nil
}

// closeWriting ends the connection that writes. SQLite keeps one open as long
// as it has a statement.
func (f *file) closeWriting() {
	for _, s := range f.statements {
		s.Close()
	}
	if f.conn != nil {
		f.conn.Close()
	}
	if f.write != nil {
		f.write.Close()
	}
	f.statements, f.conn, f.write = nil, nil, nil
}

func (f *file) closeReading() {
	if f.read != nil {
		f.read.Close()
	}
}
