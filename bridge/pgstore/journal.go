package pgstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/ledger"
)

// An entering collects the statements for the entries of one item, which count only
// once it is kept.
type entering struct {
	*tx
	journals map[string]*journal
	shared   map[string][]byte
	writes   []write
}

type write struct {
	want      int64
	statement string
	args      []any
}

func (e *entering) write(want int64, statement string, args ...any) {
	e.writes = append(e.writes, write{want, statement, args})
}

// keep makes the entries part of the transaction.
func (e *entering) keep() {
	for _, w := range e.writes {
		e.queue(w.want, w.statement, w.args...)
	}
	maps.Copy(e.tx.journals, e.journals)
	maps.Copy(e.tx.shared, e.shared)
}

// enter writes one entry, unless a later one of its item removes it.
func (e *entering) enter(ctx context.Context, entry *ledger.JournalEntry, now time.Time, moot bool) error {
	j, err := e.journal(ctx, entry.Run)
	if err != nil {
		return err
	}
	var hash []byte
	switch {
	case entry.Kind == ledger.Began && j != nil:
		return ledger.Refuse(fmt.Errorf("beginning the journal of run %s: it has one", entry.Run))
	case entry.Kind == ledger.Began:
		if hash, err = e.share(ctx, entry); err != nil {
			return err
		}
		if j, err = e.begin(entry, now); err != nil {
			return err
		}
	case j == nil && entry.Kind == ledger.Ended:
		return nil
	case j == nil:
		return ledger.Refuse(fmt.Errorf("writing the journal of run %s: %w", entry.Run, ledger.ErrNoJournal))
	case j.owner != entry.Owner, entry.Lease != 0 && entry.Lease != j.lease:
		return ledger.Refuse(fmt.Errorf("writing the journal of run %s: %w", entry.Run, ledger.ErrNotOwner))
	case entry.Kind == ledger.Sent:
		if err := e.alive(ctx, entry.Owner); err != nil {
			return err
		}
	case entry.Kind == ledger.Ended && entry.Until.IsZero():
		e.drop(entry.Run)
		return nil
	case entry.Kind == ledger.Ended:
		e.write(1, "UPDATE journals SET owner = '', wanted = '', state = $1, until = $2 WHERE run = $3", string(ledger.Finished), ledger.Nanos(entry.Until), text(entry.Run))
	}
	if moot {
		return nil
	}
	next := *j
	if entry.Kind == ledger.Ended {
		next.owner = ""
	}
	next.place++
	next.bytes += int64(len(entry.Body))
	body := next.seal.Seal(nil, nil, entry.Body, ledger.Binding(entry, next.place, hash))
	e.write(1, "INSERT INTO entries (run, place, kind, call, total, body) VALUES ($1, $2, $3, $4, $5, $6)",
		text(entry.Run), next.place, string(entry.Kind), int64(entry.Call), next.bytes, body)
	e.journals[entry.Run] = &next
	return nil
}

// journal returns what is known of a run's journal; nil if it has none.
func (e *entering) journal(ctx context.Context, run string) (*journal, error) {
	if j, ok := e.journals[run]; ok {
		return j, nil
	}
	return e.tx.journal(ctx, run)
}

func (t *tx) journal(ctx context.Context, run string) (*journal, error) {
	if j, ok := t.journals[run]; ok {
		return j, nil
	}
	if j := t.link.journals[run]; j != nil {
		return j, nil
	}
	var j journal
	err := t.conn.QueryRow(ctx, "SELECT owner, lease, coalesce(place, 0), coalesce(total, 0) FROM journals AS j"+lastEntry+" WHERE run = $1", text(run)).Scan(&j.owner, &j.lease, &j.place, &j.bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		j.seal, err = ledger.JournalCipher(t.db.key, run)
	}
	if err != nil {
		return nil, err
	}
	t.journals[run] = &j
	return &j, nil
}

// lastEntry joins each journal with its last entry.
const lastEntry = " LEFT JOIN LATERAL (SELECT place, total FROM entries AS e WHERE e.run = j.run ORDER BY place DESC LIMIT 1) AS last ON true"

// begin makes the journal of a run that has none.
func (e *entering) begin(entry *ledger.JournalEntry, now time.Time) (*journal, error) {
	seal, err := ledger.JournalCipher(e.db.key, entry.Run)
	if err != nil {
		return nil, err
	}
	e.write(1, "INSERT INTO journals (run, owner, wanted, state, began, until, shared, configuration, lease) VALUES ($1, $2, '', $3, $4, $5, $6, $7, 1)",
		text(entry.Run), text(entry.Owner), string(ledger.Live), ledger.Nanos(now), ledger.Nanos(entry.Until), text(entry.Shared), text(entry.Configuration))
	return &journal{owner: entry.Owner, lease: 1, seal: seal}, nil
}

// share stores the bytes that an entry shares with other runs, and returns their hash.
func (e *entering) share(ctx context.Context, entry *ledger.JournalEntry) ([]byte, error) {
	if entry.Shared == "" {
		return nil, nil
	}
	hash := sha256.Sum256(entry.Common)
	there, ok := e.shared[entry.Shared]
	if !ok {
		there, ok = e.tx.shared[entry.Shared]
	}
	if !ok {
		err := e.conn.QueryRow(ctx, "SELECT hash FROM shared WHERE name = $1", text(entry.Shared)).Scan(&there)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			common := entry.Common
			if common == nil {
				common = []byte{}
			}
			e.write(1, "INSERT INTO shared (name, hash, body) VALUES ($1, $2, $3)", text(entry.Shared), hash[:], common)
			there = hash[:]
		case err != nil:
			return nil, err
		}
		e.shared[entry.Shared] = there
	}
	if string(there) != string(hash[:]) {
		return nil, ledger.Refuse(fmt.Errorf("beginning the journal of run %s: other bytes are kept as %q", entry.Run, entry.Shared))
	}
	return hash[:], nil
}

// drop removes a journal. Bytes that it shares with others are left to sweep.
func (e *entering) drop(run string) {
	e.journals[run] = nil
	e.db.orphans = true
	e.write(-1, "DELETE FROM entries WHERE run = $1", text(run))
	e.write(1, "DELETE FROM journals WHERE run = $1", text(run))
}

// A journaledRun is a row of journals.
type journaledRun struct {
	ledger.JournaledRun
	shared string
}

// readRuns reads rows of journals, the oldest first.
func readRuns(ctx context.Context, from querier, where string, args ...any) ([]journaledRun, error) {
	found, err := from.Query(ctx, "SELECT j.run, owner, wanted, state, began, until, shared, configuration, lease, coalesce(total, 0) FROM journals AS j"+lastEntry+where+" ORDER BY number", args...)
	if err != nil {
		return nil, classed(err)
	}
	all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (k journaledRun, err error) {
		var began, until int64
		var wanted, state string
		err = row.Scan(&k.Run, &k.Owner, &wanted, &state, &began, &until, &k.shared, &k.Configuration, &k.Lease, &k.Bytes)
		ledger.ReadLeaseRequest(&k.JournaledRun, wanted)
		k.State, k.Began, k.Until = ledger.JournalState(state), ledger.Moment(began), ledger.Moment(until)
		return k, err
	})
	return all, classed(err)
}

// ChangeRun changes a run. See ledger.Journal.
func (db *DB) ChangeRun(ctx context.Context, run string, change func(*ledger.JournaledRun) error) (k ledger.JournaledRun, err error) {
	err = db.ask(ctx, func(ctx context.Context, t *tx) error {
		all, err := readRuns(ctx, t.conn, " WHERE run = $1", text(run))
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ledger.Refuse(fmt.Errorf("changing run %s: %w", run, ledger.ErrNoJournal))
		}
		if k, err = all[0].Change(change); err != nil {
			return ledger.Refuse(err)
		}
		if err := t.mayTake(ctx, all[0].JournaledRun, k); err != nil {
			return err
		}
		delete(t.link.journals, run)
		t.queue(1, "UPDATE journals SET owner = $1, wanted = $2, state = $3, until = $4, lease = $5 WHERE run = $6",
			text(k.Owner), text(ledger.LeaseRequest(&k)), string(k.State), ledger.Nanos(k.Until), k.Lease, text(run))
		return nil
	})
	return k, err
}

// Drop removes a run's journal. See ledger.Journal.
func (db *DB) Drop(ctx context.Context, run string) error {
	return db.ask(ctx, func(ctx context.Context, t *tx) error {
		if j, err := t.journal(ctx, run); err != nil || j == nil {
			return err
		}
		e := entering{tx: t, journals: make(map[string]*journal)}
		e.drop(run)
		e.keep()
		return nil
	})
}

// Runs returns all runs that have a journal. See ledger.Journal.
func (db *DB) Runs(ctx context.Context) ([]ledger.JournaledRun, error) { return db.runs(ctx, "") }

// LeaseRequests returns the runs that their owner is requested to hand over or end. See
// ledger.Journal.
func (db *DB) LeaseRequests(ctx context.Context, owner string) ([]ledger.JournaledRun, error) {
	return db.runs(ctx, " WHERE owner = $1 AND wanted <> ''", text(owner))
}

func (db *DB) runs(ctx context.Context, where string, args ...any) ([]ledger.JournaledRun, error) {
	found, err := readRuns(ctx, db.pool, where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading journals: %w", err)
	}
	var all []ledger.JournaledRun
	for _, k := range found {
		all = append(all, k.JournaledRun)
	}
	return all, nil
}

// Read returns a run with its entries. See ledger.Journal.
func (db *DB) Read(ctx context.Context, run string) (ledger.JournaledRun, []ledger.JournalEntry, error) {
	k, entries, err := db.read(ctx, run)
	if err != nil {
		return ledger.JournaledRun{}, nil, fmt.Errorf("reading the journal of run %s: %w", run, err)
	}
	return k, entries, nil
}

func (db *DB) read(ctx context.Context, run string) (k ledger.JournaledRun, entries []ledger.JournalEntry, err error) {
	err = db.snapshot(ctx, func(t pgx.Tx) error {
		all, err := readRuns(ctx, t, " WHERE j.run = $1", text(run))
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ledger.ErrNoJournal
		}
		k = all[0].JournaledRun
		entries, err = db.readEntries(ctx, t, &all[0])
		return err
	})
	return k, entries, err
}

// readEntries decrypts the entries of a journal.
func (db *DB) readEntries(ctx context.Context, t pgx.Tx, k *journaledRun) ([]ledger.JournalEntry, error) {
	seal, err := ledger.JournalCipher(db.key, k.Run)
	if err != nil {
		return nil, err
	}
	var common, hash []byte
	if k.shared != "" {
		err := t.QueryRow(ctx, "SELECT body FROM shared WHERE name = $1", k.shared).Scan(&common)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, ledger.Damaged("the bytes %q that it shares with others are missing", k.shared)
		}
		if err != nil {
			return nil, classed(err)
		}
		sum := sha256.Sum256(common)
		hash = sum[:]
	}
	found, err := t.Query(ctx, "SELECT place, kind, call, total, body FROM entries WHERE run = $1 ORDER BY place", text(k.Run))
	if err != nil {
		return nil, classed(err)
	}
	defer found.Close()
	var entries []ledger.JournalEntry
	for place, bytes := int64(1), int64(0); found.Next(); place++ {
		e := ledger.JournalEntry{Run: k.Run}
		var at, call, total int64
		var kind string
		var body []byte
		if err := found.Scan(&at, &kind, &call, &total, &body); err != nil {
			return nil, classed(err)
		}
		e.Kind, e.Call = ledger.EntryKind(kind), int(call)
		var with []byte
		if place == 1 {
			e.Shared, e.Common, with = k.shared, common, hash
		}
		e.Body, err = seal.Open(nil, nil, body, ledger.Binding(&e, place, with))
		bytes += int64(len(e.Body))
		if err != nil || at != place || total != bytes || (place == 1) != (e.Kind == ledger.Began) {
			return nil, ledger.Damaged("its entry %d is not what was written", place)
		}
		entries = append(entries, e)
	}
	if err := found.Err(); err != nil {
		return nil, classed(err)
	}
	if len(entries) == 0 {
		return nil, ledger.Damaged("its entries are missing")
	}
	return entries, nil
}
