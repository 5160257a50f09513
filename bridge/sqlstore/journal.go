package sqlstore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/ledger"
)

// schema2 adds the journals of runs. The entries of each journal are numbered in a
// range of their own, so that its last entry, and all of them, are found without
// an index.
const schema2 = `CREATE TABLE journals (
	number INTEGER PRIMARY KEY,
	run    TEXT NOT NULL UNIQUE,
	owner  TEXT NOT NULL,    -- who runs it; empty for nobody
	wanted TEXT NOT NULL,
	state  TEXT NOT NULL,
	began  INTEGER NOT NULL, -- unix nanoseconds
	until  INTEGER NOT NULL, -- unix nanoseconds; 0 for no time
	shared TEXT NOT NULL     -- the name of the bytes in shared; empty for none
);
CREATE INDEX journals_wanted ON journals (owner) WHERE wanted <> '';
CREATE TABLE entries (
	id    INTEGER PRIMARY KEY, -- number of the journal << 32 | place in it, from 1
	kind  TEXT NOT NULL,
	call  INTEGER NOT NULL,
	total INTEGER NOT NULL, -- bytes of the journal's bodies up to this one
	body  BLOB NOT NULL     -- encrypted
);
CREATE TABLE shared (
	name TEXT PRIMARY KEY,
	hash BLOB NOT NULL,      -- SHA-256 of body
	body BLOB NOT NULL
);
`

// schema3 adds the configuration of each run: a run belongs to the one that it
// began with.
const schema3 = `CREATE TABLE configurations (
	journal INTEGER PRIMARY KEY, -- its number
	id      TEXT NOT NULL        -- of the configuration
);
`

const (
	// journalsWithLast joins each journal with its last entry.
	journalsWithLast = ` FROM journals LEFT JOIN entries ON id = (
		SELECT max(e.id) FROM entries AS e WHERE e.id > number << 32 AND e.id < (number + 1) << 32)`
	// runsQuery has a place for the expression for a run's configuration.
	runsQuery = "SELECT number, run, owner, wanted, state, began, until, shared, coalesce(total, 0), %s, %s" + journalsWithLast
	whoseRun  = "coalesce((SELECT c.id FROM configurations AS c WHERE c.journal = number), '')"

	placeBits = 32
	placeMask = 1<<placeBits - 1
)

// A journal is what the writing goroutine knows of one run's journal.
type journal struct {
	run    string
	number int64
	owner  string
	lease  int64
	place  int64 // of its last entry
	bytes  int64
	seal   cipher.AEAD
}

// sealer returns the cipher for the entries of a run: AES-256-GCM under the run's
// own key, with a random nonce before each text.
func (f *file) sealer(run string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(derive(f.key, "journal "+run))
	if err != nil {
		return nil, fmt.Errorf("encrypting the journal of run %s: %w", run, err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// binding returns the data that binds an encrypted body to its place and to the
// row's other columns; hash is that of the shared bytes. The key binds it to its
// run.
func binding(e *ledger.JournalEntry, place int64, hash []byte) []byte {
	b := make([]byte, 0, 64+len(e.Kind)+len(e.Shared)+len(hash))
	for _, n := range []int64{place, int64(e.Call)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	for _, text := range []string{string(e.Kind), e.Shared, string(hash)} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// take checks entries and adds them to the item.
func (it *item) take(entries []ledger.JournalEntry, clock func() time.Time) error {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return err
		}
		if entries[i].Kind == ledger.Began {
			it.at = clock()
		}
	}
	it.journal = entries
	return nil
}

// size returns about how many bytes an item writes.
func (it *item) size() int {
	n := len(it.body)
	for i := range it.journal {
		n += len(it.journal[i].Body)
	}
	return n
}

// Append stores entries. See ledger.Journal.
func (db *DB) Append(ctx context.Context, entries ...ledger.JournalEntry) error {
	if err := ctx.Err(); err != nil || len(entries) == 0 {
		return err
	}
	if db.o.ReadOnly {
		return errReadOnly
	}
	it := &item{durable: db.o.AllDurable, done: make(chan error, 1)}
	if err := it.take(entries, db.o.Clock); err != nil {
		return err
	}
	return db.keep(ctx, it)
}

// A refusedError is an error of one item that does not affect the rest of the
// transaction.
type refusedError struct{ error }

// addEntries writes the entries of an item, all or none, in the open transaction.
// If they are refused, none is written and the item says so.
func (f *file) addEntries(ctx context.Context, it *item) (err error) {
	it.refused = nil
	switch len(it.journal) {
	case 0:
		return nil
	case 1: // what it is refused for is found before anything is written
		err = f.addEntry(ctx, &it.journal[0], it.at)
	default:
		if err := f.exec(ctx, "SAVEPOINT item"); err != nil {
			return err
		}
		for i := range it.journal {
			if err = f.addEntry(ctx, &it.journal[i], it.at); err != nil {
				break
			}
		}
		if errors.As(err, new(refusedError)) {
			clear(f.journals)
			if err := f.exec(ctx, "ROLLBACK TO item"); err != nil {
				return err
			}
		}
		if err := f.exec(ctx, "RELEASE item"); err != nil {
			return err
		}
	}
	if no := (refusedError{}); errors.As(err, &no) {
		it.refused, err = no.error, nil
	}
	return err
}

// addEntry writes one entry.
func (f *file) addEntry(ctx context.Context, e *ledger.JournalEntry, now time.Time) error {
	j, err := f.journal(ctx, e.Run)
	if err != nil {
		return err
	}
	var hash []byte
	switch {
	case e.Kind == ledger.Began && j != nil:
		return refusedError{fmt.Errorf("beginning the journal of run %s: it has one", e.Run)}
	case e.Kind == ledger.Began:
		if hash, err = f.share(ctx, e); err != nil {
			return err
		}
		if j, err = f.beginJournal(ctx, e, now); err != nil {
			return err
		}
	case j == nil && e.Kind == ledger.Ended:
		return nil
	case j == nil:
		return refusedError{fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNoJournal)}
	case j.owner != e.Owner, e.Lease != 0 && e.Lease != j.lease:
		return refusedError{fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNotOwner)}
	case e.Kind == ledger.Ended && e.Until.IsZero():
		return f.dropJournal(ctx, j)
	case e.Kind == ledger.Ended:
		if err := one(f.conn.ExecContext(ctx, "UPDATE journals SET owner = '', wanted = '', state = ?, until = ? WHERE number = ?",
			ledger.Finished, nanos(e.Until), j.number)); err != nil {
			return err
		}
		j.owner = ""
	}
	j.place++
	j.bytes += int64(len(e.Body))
	body := j.seal.Seal(nil, nil, e.Body, binding(e, j.place, hash))
	return one(f.insertEntry.ExecContext(ctx, j.number<<placeBits|j.place, string(e.Kind), e.Call, j.bytes, body))
}

// journal returns what is known of a run's journal; nil if it has none.
func (f *file) journal(ctx context.Context, run string) (*journal, error) {
	if j := f.journals[run]; j != nil {
		return j, nil
	}
	j := &journal{run: run}
	var last, bytes sql.NullInt64
	err := f.findJournal.QueryRowContext(ctx, run).Scan(&j.number, &j.owner, &j.lease, &last, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j.place, j.bytes = last.Int64&placeMask, bytes.Int64
	if j.seal, err = f.sealer(run); err != nil {
		return nil, err
	}
	f.journals[run] = j
	return j, nil
}

// beginJournal makes the journal of a run that has none.
func (f *file) beginJournal(ctx context.Context, e *ledger.JournalEntry, now time.Time) (*journal, error) {
	if err := one(f.conn.ExecContext(ctx, "INSERT INTO journals (run, owner, wanted, state, began, until, shared) VALUES (?, ?, '', ?, ?, ?, ?)",
		e.Run, e.Owner, ledger.Live, nanos(now), nanos(e.Until), e.Shared)); err != nil {
		return nil, err
	}
	var number int64
	if err := f.conn.QueryRowContext(ctx, "SELECT number FROM journals WHERE run = ?", e.Run).Scan(&number); err != nil {
		return nil, err
	}
	if err := f.setLease(ctx, number, 1); err != nil {
		return nil, err
	}
	j, err := f.journal(ctx, e.Run)
	if err != nil || e.Configuration == "" {
		return j, err
	}
	// A release that knows no configurations leaves the row of a journal that it drops.
	return j, f.exec(ctx, "INSERT OR REPLACE INTO configurations (journal, id) VALUES (?, ?)", j.number, e.Configuration)
}

// share stores the bytes that e shares with other runs, and returns their hash.
func (f *file) share(ctx context.Context, e *ledger.JournalEntry) ([]byte, error) {
	if e.Shared == "" {
		return nil, nil
	}
	hash := sha256.Sum256(e.Common)
	var there []byte
	err := f.conn.QueryRowContext(ctx, "SELECT hash FROM shared WHERE name = ?", e.Shared).Scan(&there)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		common := e.Common
		if common == nil {
			common = []byte{}
		}
		err = one(f.conn.ExecContext(ctx, "INSERT INTO shared (name, hash, body) VALUES (?, ?, ?)", e.Shared, hash[:], common))
	case err == nil && string(there) != string(hash[:]):
		err = refusedError{fmt.Errorf("beginning the journal of run %s: other bytes are kept as %q", e.Run, e.Shared)}
	}
	return hash[:], err
}

// dropJournal removes a journal. Bytes that it shares with others are left to
// sweep.
func (f *file) dropJournal(ctx context.Context, j *journal) error {
	delete(f.journals, j.run)
	f.orphans = true
	if err := f.exec(ctx, "DELETE FROM entries WHERE id > ? AND id < ?", j.number<<placeBits, (j.number+1)<<placeBits); err != nil {
		return err
	}
	if err := f.exec(ctx, "DELETE FROM configurations WHERE journal = ?", j.number); err != nil {
		return err
	}
	if err := f.exec(ctx, "DELETE FROM leases WHERE journal = ?", j.number); err != nil {
		return err
	}
	return one(f.conn.ExecContext(ctx, "DELETE FROM journals WHERE number = ?", j.number))
}

// sweep removes shared bytes that no journal names. A journal that begins later
// finds them missing and writes them again.
func (f *file) sweep(ctx context.Context) error {
	if !f.orphans {
		return nil
	}
	err := f.inTransaction(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		return f.exec(ctx, "DELETE FROM shared WHERE name NOT IN (SELECT shared FROM journals)")
	})
	if err == nil {
		f.orphans = false
	}
	return err
}

// sweep calls [file.sweep] in the writing goroutine.
func (db *DB) sweep(ctx context.Context) {
	db.swept = time.Now()
	_ = db.do(ctx, func(ctx context.Context, f *file) error { return f.sweep(ctx) }) // Err says it
}

// changing runs change in a transaction of the writing goroutine. If change
// returns a refusal everything is left as it was.
func (db *DB) changing(ctx context.Context, change func(context.Context, *file) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var no refusedError
	err := db.ask(ctx, func(ctx context.Context, f *file) error {
		if err := f.synchronous(ctx, db.o.AllDurable); err != nil {
			return err
		}
		return f.inTransaction(ctx, func() error {
			if err := f.refresh(ctx); err != nil {
				return err
			}
			err := change(ctx, f)
			if errors.As(err, &no) { // nothing was written
				err = nil
			}
			return err
		})
	})
	if err == nil && no.error == nil {
		db.notify()
	}
	if err == nil {
		err = no.error
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
			return refusedError{fmt.Errorf("changing run %s: %w", run, ledger.ErrNoJournal)}
		}
		if k, err = all[0].Change(change); err != nil {
			return refusedError{err}
		}
		delete(f.journals, run)
		if k.Lease != all[0].Lease {
			if err := f.setLease(ctx, all[0].number, k.Lease); err != nil {
				return err
			}
		}
		return one(f.conn.ExecContext(ctx, "UPDATE journals SET owner = ?, wanted = ?, state = ?, until = ? WHERE run = ?",
			k.Owner, wantedOf(&k), k.State, nanos(k.Until), run))
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
		readWanted(&k.JournaledRun, wanted)
		k.Began, k.Until = moment(began), moment(until)
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
func (db *DB) Runs(ctx context.Context) ([]ledger.JournaledRun, error) { return db.runs(ctx, "") }

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
	seal, err := f.sealer(k.Run)
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
		e.Body, err = seal.Open(nil, nil, body, binding(&e, place, with))
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
