package sqlstore

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"database/sql"
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

// addEntry writes one entry, unless a later one of its item removes it.
func (f *file) addEntry(ctx context.Context, e *ledger.JournalEntry, now time.Time, moot bool) error {
	j, err := f.journal(ctx, e.Run)
	if err != nil {
		return err
	}
	var hash []byte
	switch {
	case e.Kind == ledger.Began && j != nil:
		return ledger.Refuse(fmt.Errorf("beginning the journal of run %s: it has one", e.Run))
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
		return ledger.Refuse(fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNoJournal))
	case j.owner != e.Owner, e.Lease != 0 && e.Lease != j.lease:
		return ledger.Refuse(fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNotOwner))
	case e.Kind == ledger.Ended && e.Until.IsZero():
		return f.dropJournal(ctx, j)
	case e.Kind == ledger.Ended:
		if err := one(f.run(ctx, "UPDATE journals SET owner = '', wanted = '', state = ?, until = ? WHERE number = ?",
			ledger.Finished, ledger.Nanos(e.Until), j.number)); err != nil {
			return err
		}
		j.owner = ""
	}
	if moot {
		return nil
	}
	j.place++
	j.bytes += int64(len(e.Body))
	body := j.seal.Seal(nil, nil, e.Body, ledger.Binding(e, j.place, hash))
	return one(f.run(ctx, "INSERT INTO entries (id, kind, call, total, body) VALUES (?, ?, ?, ?, ?)", j.number<<placeBits|j.place, string(e.Kind), e.Call, j.bytes, body))
}

// journal returns what is known of a run's journal; nil if it has none.
func (f *file) journal(ctx context.Context, run string) (*journal, error) {
	if j := f.journals[run]; j != nil {
		return j, nil
	}
	j := &journal{run: run}
	var last, bytes sql.NullInt64
	err := f.get(ctx, "SELECT number, owner, "+leaseOfRun+", id, total"+journalsWithLast+" WHERE run = ?", []any{run}, &j.number, &j.owner, &j.lease, &last, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j.place, j.bytes = last.Int64&placeMask, bytes.Int64
	if j.seal, err = ledger.JournalCipher(f.key, run); err != nil {
		return nil, err
	}
	f.journals[run] = j
	return j, nil
}

// beginJournal makes the journal of a run that has none.
func (f *file) beginJournal(ctx context.Context, e *ledger.JournalEntry, now time.Time) (*journal, error) {
	if err := one(f.run(ctx, "INSERT INTO journals (run, owner, wanted, state, began, until, shared) VALUES (?, ?, '', ?, ?, ?, ?)",
		e.Run, e.Owner, ledger.Live, ledger.Nanos(now), ledger.Nanos(e.Until), e.Shared)); err != nil {
		return nil, err
	}
	j, err := f.journal(ctx, e.Run)
	if err != nil {
		return nil, err
	}
	if j == nil {
		return nil, damaged("a row was not kept although the database took it")
	}
	j.lease = 1
	if err := f.setLease(ctx, j.number, j.lease); err != nil || e.Configuration == "" {
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
	err := f.get(ctx, "SELECT hash FROM shared WHERE name = ?", []any{e.Shared}, &there)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		common := e.Common
		if common == nil {
			common = []byte{}
		}
		err = one(f.run(ctx, "INSERT INTO shared (name, hash, body) VALUES (?, ?, ?)", e.Shared, hash[:], common))
	case err == nil && string(there) != string(hash[:]):
		err = ledger.Refuse(fmt.Errorf("beginning the journal of run %s: other bytes are kept as %q", e.Run, e.Shared))
	}
	return hash[:], err
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

func sum(b []byte) []byte {
	hash := sha256.Sum256(b)
	return hash[:]
}
