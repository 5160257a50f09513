package sqlstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"codemode-bridge/bridge/ledger"
)

// A file is one opening of the store's file. Only the writing goroutine uses the
// fields that are not marked as for readers.
type file struct {
	id   string // the store's
	key  []byte
	read *sql.DB // for readers

	info        os.FileInfo // of the open file, when it was opened; for everybody
	size        int64       // of the file, when it was last looked at
	wal         os.FileInfo // of its -wal; nil until it was written to
	write       *sql.DB
	conn        *sql.Conn // the only connection of write
	insertRow   *sql.Stmt
	begin       *sql.Stmt // BEGIN IMMEDIATE
	commit      *sql.Stmt // COMMIT
	dataVersion *sql.Stmt // PRAGMA data_version
	insertEntry *sql.Stmt // of an entry of a journal
	findJournal *sql.Stmt // of a journal
	ring        *ledger.Keyring
	sync        string // PRAGMA synchronous of conn

	seq       int64 // the head, as of data
	hash      ledger.Hash
	compacted int64 // the last row of table rows
	data      int64 // PRAGMA data_version for which the above holds
	seen      int64 // PRAGMA data_version that watchers were told of

	journals map[string]*journal // by run; what is known of them, as of data
	orphans  bool                // there may be shared bytes that no journal names
}

// A lastSeen is what a process remembers of a store: that it had this row.
type lastSeen struct {
	store string
	seq   int64
	hash  ledger.Hash
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ledger.ErrDamaged}, args...)...)
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ledger.ErrUnavailable}, args...)...)
}

// code returns SQLite's primary result code for err; 0 if it has none.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// broken reports whether err is SQLite's way of saying that the file is not what it
// should be: corrupt, not a database, or without our tables.
func broken(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR:
		return true
	}
	return false
}

// classed makes err wrap ErrDamaged or ErrUnavailable.
func classed(err error) error {
	switch {
	case err == nil || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnavailable):
		return err
	case broken(err):
		return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}

// openFile opens the store and checks its end. known is what this process
// remembers of it, nil for nothing; afresh permits a new store although there is
// the key of an old one.
//
// With an error that wraps ErrDamaged it may return a file that can only be read.
// Any other error has a cause that a person must remove: a folder that cannot be
// written, a newer schema.
func openFile(ctx context.Context, o *Options, known *lastSeen, afresh bool) (_ *file, err error) {
	info, err := o.place(known, afresh)
	if err != nil {
		return nil, err
	}
	if err := checkWAL(ctx, o); err != nil {
		return nil, opening(o.Path, err)
	}
	f := &file{info: info, size: info.Size(), journals: make(map[string]*journal)}
	mode := "rw"
	if o.ReadOnly {
		mode = "ro"
	}
	if f.write, err = connect(o.Path, mode, 1); err == nil {
		f.conn, err = f.write.Conn(ctx)
	}
	if err == nil && !o.ReadOnly {
		err = f.enterWAL(ctx)
	}
	if err == nil {
		err = f.prepare(ctx)
	}
	if err == nil {
		err = f.prepareSchema(ctx, o, known, afresh)
	}
	if err == nil {
		err = f.identify(ctx, o)
	}
	if f.id != "" {
		f.read, _ = connect(o.Path, "ro", 4) // an error shows at the first use
	}
	if err == nil {
		f.ring = ledger.NewKeyring(f.id, f.key)
		err = f.check(ctx, o, known, afresh)
	}
	if err == nil && !o.ReadOnly {
		err = f.prepareWriting(ctx)
	}
	if err == nil {
		return f, nil
	}
	f.closeWriting()
	if err = opening(o.Path, err); f.read == nil || !errors.Is(err, ledger.ErrDamaged) {
		f.closeReading()
		return nil, err
	}
	return f, err
}

// prepare prepares the statements of every transaction.
func (f *file) prepare(ctx context.Context) (err error) {
	if f.begin, err = f.conn.PrepareContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if f.commit, err = f.conn.PrepareContext(ctx, "COMMIT"); err != nil {
		return err
	}
	f.dataVersion, err = f.conn.PrepareContext(ctx, "PRAGMA data_version")
	return err
}

// prepareWriting prepares the statements that need the tables.
func (f *file) prepareWriting(ctx context.Context) (err error) {
	if f.insertRow, err = f.conn.PrepareContext(ctx, "INSERT INTO recent (seq, hash, seal, body) VALUES (?, ?, ?, ?)"); err != nil {
		return err
	}
	if f.insertEntry, err = f.conn.PrepareContext(ctx, "INSERT INTO entries (id, kind, call, total, body) VALUES (?, ?, ?, ?, ?)"); err != nil {
		return err
	}
	f.findJournal, err = f.conn.PrepareContext(ctx, "SELECT number, owner, "+leaseOfRun+", id, total"+journalsWithLast+" WHERE run = ?")
	return err
}

// version returns what changes when another connection changes the file.
func (f *file) version(ctx context.Context) (v int64, err error) {
	err = f.dataVersion.QueryRowContext(ctx).Scan(&v)
	return v, err
}

// opening adds what was being done, keeping the class of err.
func opening(path string, err error) error {
	if err = classed(err); errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	return fmt.Errorf("opening the audit log %s: %w", path, err)
}

// place finds the file, or makes an empty one if there is none.
func (o *Options) place(known *lastSeen, afresh bool) (os.FileInfo, error) {
	dir := filepath.Dir(o.Path)
	if !o.ReadOnly {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the audit log's folder: %w", err)
		}
	}
	if kind := o.networkFS(dir); kind != "" {
		return nil, fmt.Errorf("opening the audit log %s: it is on %s, and SQLite needs a file system of this machine alone: move it with audit.path", o.Path, kind)
	}
	info, err := os.Stat(o.Path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("opening the audit log %s: it is no plain file", o.Path)
	case err == nil:
		if runtime.GOOS != "windows" && !o.ReadOnly && info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(o.Path, 0o600); err != nil {
				return nil, fmt.Errorf("closing the audit log to others: %w", err)
			}
		}
		return info, nil
	case !errors.Is(err, fs.ErrNotExist) || o.ReadOnly:
		return nil, fmt.Errorf("opening the audit log: %w", err)
	case known != nil:
		return nil, unavailable("its file %s is gone", o.Path)
	}
	if !afresh {
		if _, err := os.Stat(o.Key); err == nil {
			return nil, damaged("its file %s is gone, though its key is there", o.Path)
		}
		if last, err := lastCheckpoint(o); err != nil {
			return nil, err
		} else if last != nil {
			return nil, damaged("its file %s is gone, though %s has a checkpoint of it", o.Path, o.CheckpointFile)
		}
	}
	if _, err := os.Lstat(o.Path + "-wal"); err == nil {
		return nil, damaged("its file %s is gone, though its -wal is there", o.Path)
	}
	f, err := os.OpenFile(o.Path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the audit log: %w", err)
	}
	info, err = f.Stat()
	// Closed before SQLite opens it: closing any descriptor of a file drops
	// the locks that this process has on it.
	return info, errors.Join(err, f.Close())
}

// enterWAL switches the file to a write-ahead log, unless it already has one.
// SQLite does not wait for others when it does that, so we do.
func (f *file) enterWAL(ctx context.Context) error {
	for try := 0; ; try++ {
		var mode string
		err := f.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if code(err) == sqlite3.SQLITE_BUSY && try < 100 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err == nil && mode != "wal" {
			err = fmt.Errorf("SQLite cannot keep a write-ahead log here")
		}
		return err
	}
}

// prepareSchema brings the schema to what this release needs, from nothing if the
// file is new.
func (f *file) prepareSchema(ctx context.Context, o *Options, known *lastSeen, afresh bool) error {
	if o.ReadOnly {
		return migrate(ctx, f.conn, true)
	}
	return f.inTransaction(ctx, func() error {
		var tables int
		if err := f.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil || tables > 0 {
			if err == nil {
				err = migrate(ctx, f.conn, false)
			}
			return err
		}
		key, err := readKeyFile(o.Key)
		switch {
		case known != nil || err == nil && !afresh:
			return damaged("its file %s is empty", o.Path)
		case errors.Is(err, fs.ErrNotExist):
			key, err = makeKey(o.Key)
		}
		if err != nil {
			return err
		}
		id := make([]byte, 16)
		rand.Read(id)
		store := hex.EncodeToString(id)
		return f.exec(ctx, strings.Join(migrations, "")+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", application, version)+
			fmt.Sprintf("INSERT INTO meta VALUES ('oldest', '%d'), ('store', '%s'), ('key', '%s'), ('seal', '%s');", oldestReader, store, keyName(key), metaSeal(key, store)))
	})
}

// metaSeal shows that whoever wrote the store's name had its key.
func metaSeal(key []byte, store string) string {
	return hex.EncodeToString(derive(key, "store "+store))
}

// identify reads the store's id and finds its key.
func (f *file) identify(ctx context.Context, o *Options) error {
	meta := make(map[string]string)
	rows, err := f.conn.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		meta[name] = value
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := genuine(ctx, f.conn); err != nil {
		return err
	}
	f.id = meta["store"]
	if f.key, err = readKey(o.Key, meta["key"], o.ReadOnly); err != nil {
		return err
	}
	if !hmac.Equal([]byte(metaSeal(f.key, f.id)), []byte(meta["seal"])) {
		return damaged("its name was changed")
	}
	return nil
}

// inTransaction runs do in a transaction that has the write lock.
func (f *file) inTransaction(ctx context.Context, do func() error) error {
	if _, err := f.begin.ExecContext(ctx); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = f.commit.ExecContext(ctx)
	}
	if err != nil {
		f.exec(context.WithoutCancel(ctx), "ROLLBACK") // the connection is closed if that fails
	}
	return err
}

func (f *file) exec(ctx context.Context, text string, args ...any) error {
	_, err := f.conn.ExecContext(ctx, text, args...)
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

const headQuery = `SELECT seq, hash, seal FROM (SELECT seq, hash, seal FROM rows ORDER BY seq DESC LIMIT 1)
	UNION ALL SELECT seq, hash, seal FROM (SELECT seq, hash, seal FROM recent ORDER BY seq DESC LIMIT 1)
	ORDER BY seq DESC LIMIT 1`

// readHead sets the head from the file and returns its seal without checking it.
func (f *file) readHead(ctx context.Context) (seal []byte, err error) {
	var hash []byte
	f.seq, f.hash = 0, ledger.Hash{}
	err = f.conn.QueryRowContext(ctx, headQuery).Scan(&f.seq, &hash, &seal)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	copy(f.hash[:], hash)
	if err == nil {
		f.compacted, err = f.number(ctx, "SELECT coalesce(max(seq), 0) FROM rows")
	}
	return seal, err
}

// has checks that a row that once existed still does, or was pruned.
func (f *file) has(ctx context.Context, m lastSeen) error {
	var hash []byte
	err := f.conn.QueryRowContext(ctx, "SELECT hash FROM rows WHERE seq = ?1 UNION ALL SELECT hash FROM recent WHERE seq = ?1", m.seq).Scan(&hash)
	switch {
	case err == nil && string(hash) != string(m.hash[:]):
		return damaged("row %d is not the one that was written", m.seq)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	first, err := f.number(ctx, "SELECT coalesce(min(seq), 0) FROM log")
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

// add writes a batch in one transaction, except for the items that are refused.
// After an error the file must not be used.
func (f *file) add(ctx context.Context, path string, batch []*item, durable bool) error {
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
			if err := f.addEntries(ctx, it); err != nil {
				return err
			}
			if it.body == nil || it.refused != nil {
				continue
			}
			seq++
			hash = ledger.HashRow(f.id, seq, hash, it.body)
			seal := f.ring.Seal(seq, hash)
			if err := one(f.insertRow.ExecContext(ctx, seq, hash[:], seal[:], string(it.body))); err != nil {
				return err
			}
		}
		return nil
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
	return f.exec(ctx, "PRAGMA synchronous = "+level)
}

// compact moves up to n of the oldest rows from recent to rows and reports whether
// more are left.
func (f *file) compact(ctx context.Context, n int) (more bool, err error) {
	if err := f.synchronous(ctx, false); err != nil {
		return false, err
	}
	err = f.inTransaction(ctx, func() error {
		limit := strconv.Itoa(n)
		if err := f.refresh(ctx); err != nil {
			return err
		}
		err := f.exec(ctx, "INSERT INTO rows (seq, hash, seal, body) SELECT seq, hash, seal, body FROM recent ORDER BY seq LIMIT "+limit)
		if err == nil {
			err = f.exec(ctx, "DELETE FROM recent WHERE seq <= (SELECT max(seq) FROM rows)")
		}
		if err == nil {
			f.compacted, err = f.number(ctx, "SELECT coalesce(max(seq), 0) FROM rows")
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
	return f.exec(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
}

// closeWriting ends the connection that writes. SQLite keeps one open as long
// as it has a statement.
func (f *file) closeWriting() {
	for _, s := range []*sql.Stmt{f.insertRow, f.begin, f.commit, f.dataVersion, f.insertEntry, f.findJournal} {
		if s != nil {
			s.Close()
		}
	}
	if f.conn != nil {
		f.conn.Close()
	}
	if f.write != nil {
		f.write.Close()
	}
	f.insertRow, f.begin, f.commit, f.dataVersion, f.insertEntry, f.findJournal, f.conn, f.write = nil, nil, nil, nil, nil, nil, nil, nil
}

func (f *file) closeReading() {
	if f.read != nil {
		f.read.Close()
	}
}
