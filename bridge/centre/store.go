package centre

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
)

// ErrUnknown: there is no laptop of that name.
var ErrUnknown = errors.New("there is no laptop of that name")

// A Dialect is what differs between databases.
type Dialect int

const (
	SQLite Dialect = iota
	PostgreSQL
)

// A Store keeps laptops, the codes that enrol them, and their rows, in three tables of a
// database. Every change is one transaction, in which the laptop is locked. Its methods may be
// called concurrently, by several processes too.
type Store struct {
	db *sql.DB
	is Dialect
}

const schema = `
CREATE TABLE IF NOT EXISTS laptops (
	name TEXT PRIMARY KEY,
	body TEXT NOT NULL       -- Laptop as JSON
);
CREATE TABLE IF NOT EXISTS laptop_codes (
	id    TEXT PRIMARY KEY,
	until BIGINT NOT NULL,   -- unix seconds
	body  TEXT NOT NULL      -- Code as JSON
);
CREATE TABLE IF NOT EXISTS laptop_rows (
	laptop TEXT NOT NULL,
	chain  BIGINT NOT NULL,  -- from 1
	seq    BIGINT NOT NULL,
	hash   BYTEA NOT NULL,
	seal   BYTEA NOT NULL,   -- with the centre's key
	body   BYTEA NOT NULL,   -- the record, byte for byte
	PRIMARY KEY (laptop, chain, seq)
);
`

// setupLock is the lock in PostgreSQL under which the tables are made.
const setupLock = 0x6c61_7074

// OpenStore makes the tables if need be. Closing the store closes the database.
func OpenStore(ctx context.Context, db *sql.DB, is Dialect) (*Store, error) {
	s := &Store{db, is}
	err := s.within(ctx, func(tx *sql.Tx) error {
		if is == PostgreSQL {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", setupLock)); err != nil {
				return err
			}
		}
		for _, one := range strings.Split(schema, ";\n") {
			if strings.TrimSpace(one) == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening the store of laptops: %w", err)
	}
	return s, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		tx.Rollback() // nothing of it is kept either way
		return err
	}
	return tx.Commit()
}

// text adapts a query, whose parameters are $1, $2 and so on, to the database. In SQLite a
// transaction has the lock of the whole file from its beginning.
func (s *Store) text(query string) string {
	if s.is == SQLite {
		return strings.ReplaceAll(strings.ReplaceAll(query, "$", "?"), " FOR UPDATE", "")
	}
	return query
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// one reads the JSON that a query finds; false if it finds none.
func (s *Store) one(ctx context.Context, q querier, into any, query string, args ...any) (bool, error) {
	var body string
	err := q.QueryRowContext(ctx, s.text(query), args...).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), into)
	}
	return err == nil, err
}

func (s *Store) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, s.text(query), args...)
	return err
}

func (s *Store) put(ctx context.Context, tx *sql.Tx, l *Laptop) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return s.exec(ctx, tx, "INSERT INTO laptops (name, body) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET body = excluded.body", l.Name, string(body))
}

func (s *Store) insert(ctx context.Context, tx *sql.Tx, laptop string, chain int, link ledger.Link) error {
	err := s.exec(ctx, tx, "INSERT INTO laptop_rows (laptop, chain, seq, hash, seal, body) VALUES ($1, $2, $3, $4, $5, $6)",
		laptop, chain, link.Seq, link.Hash[:], link.Seal[:], link.Body)
	if err != nil {
		return fmt.Errorf("keeping row %d: %w", link.Seq, err)
	}
	return nil
}

// Laptop returns a laptop, or [ErrUnknown].
func (s *Store) Laptop(ctx context.Context, name string) (*Laptop, error) {
	l := new(Laptop)
	ok, err := s.one(ctx, s.db, l, "SELECT body FROM laptops WHERE name = $1", name)
	if err == nil && !ok {
		err = ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("reading the laptop %.200q: %w", name, err)
	}
	return l, nil
}

// Laptops returns all laptops, by name.
func (s *Store) Laptops(ctx context.Context) ([]*Laptop, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT body FROM laptops ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("reading the laptops: %w", err)
	}
	defer rows.Close()
	var all []*Laptop
	for rows.Next() {
		var body string
		l := new(Laptop)
		err := rows.Scan(&body)
		if err == nil {
			err = json.Unmarshal([]byte(body), l)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the laptops: %w", err)
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

// Change replaces a laptop by what change makes of it, together with new rows of its last
// chain. If change returns an error nothing is kept, and the error is that one; it is
// [ErrUnknown] if there is no such laptop.
func (s *Store) Change(ctx context.Context, name string, change func(*Laptop) ([]ledger.Link, error)) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		l := new(Laptop)
		ok, err := s.one(ctx, tx, l, "SELECT body FROM laptops WHERE name = $1 FOR UPDATE", name)
		if err == nil && !ok {
			err = ErrUnknown
		}
		if err != nil {
			return err
		}
		before := len(l.Chains)
		l.hash = func(seq int64) (h ledger.Hash, err error) {
			var hash []byte
			err = tx.QueryRowContext(ctx, s.text("SELECT hash FROM laptop_rows WHERE laptop = $1 AND chain = $2 AND seq = $3"), name, before, seq).Scan(&hash)
			copy(h[:], hash)
			return h, err
		}
		links, err := change(l)
		if err != nil {
			return err
		}
		for _, link := range links {
			if err := s.insert(ctx, tx, name, len(l.Chains), link); err != nil {
				return err
			}
		}
		return s.put(ctx, tx, l)
	})
}

// Invite keeps a code, and returns the name that its laptop gets: the one that is asked for, or the
// person's, with a number if there is another laptop of that name. Again means that the
// laptop is enrolled already, and its next machine or log follows.
func (s *Store) Invite(ctx context.Context, code Code, again bool, now time.Time) (Code, error) {
	err := s.within(ctx, func(tx *sql.Tx) error {
		if err := s.exec(ctx, tx, "DELETE FROM laptop_codes WHERE until < $1", now.Unix()); err != nil {
			return err
		}
		taken, err := s.takenNames(ctx, tx)
		if err != nil {
			return err
		}
		switch name := code.Laptop; {
		case again:
			l := new(Laptop)
			if ok, err := s.one(ctx, tx, l, "SELECT body FROM laptops WHERE name = $1", name); err != nil || !ok {
				return errors.Join(err, ErrUnknown)
			}
			code.Person, code.Again = l.Person, true
		case name != "" && slices.Contains(taken, name):
			return fmt.Errorf("there is a laptop called %s already, or one is invited", name)
		case name == "":
			code.Laptop = code.Person
			for n := 2; slices.Contains(taken, code.Laptop); n++ {
				code.Laptop = fmt.Sprintf("%s-%d", code.Person, n)
			}
		}
		body, err := json.Marshal(code)
		if err != nil {
			return err
		}
		return s.exec(ctx, tx, "INSERT INTO laptop_codes (id, until, body) VALUES ($1, $2, $3)", code.ID, code.Until.Unix(), string(body))
	})
	if err != nil {
		return code, fmt.Errorf("inviting a laptop: %w", err)
	}
	return code, nil
}

// takenNames returns the names of laptops and of those invited.
func (s *Store) takenNames(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT body FROM laptop_codes UNION ALL SELECT body FROM laptops")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		var is struct{ Name, Laptop string } // of a laptop, or of a code
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(body), &is); err != nil {
			return nil, err
		}
		names = append(names, is.Name+is.Laptop)
	}
	return names, rows.Err()
}

// Enrol finds a code, and the laptop that it names, and keeps what use makes of them. Both
// are nil if they are not there. If use returns an error nothing is kept.
func (s *Store) Enrol(ctx context.Context, id string, use func(code *Code, before *Laptop) (*Laptop, error)) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		code, before := new(Code), new(Laptop)
		ok, err := s.one(ctx, tx, code, "SELECT body FROM laptop_codes WHERE id = $1 FOR UPDATE", id)
		if err != nil {
			return err
		}
		if !ok {
			_, err := use(nil, nil)
			return err
		}
		if ok, err = s.one(ctx, tx, before, "SELECT body FROM laptops WHERE name = $1 FOR UPDATE", code.Laptop); err != nil {
			return err
		}
		if !ok {
			before = nil
		}
		after, err := use(code, before)
		if err != nil {
			return err
		}
		body, err := json.Marshal(code)
		if err != nil {
			return err
		}
		if err := s.exec(ctx, tx, "UPDATE laptop_codes SET body = $1 WHERE id = $2", string(body), id); err != nil {
			return err
		}
		return s.put(ctx, tx, after)
	})
}

// page is how many rows are read at a time, so that a slow reader holds nothing up.
const page = 500

// Rows yields the rows of a laptop's chain after a row, in their order.
func (s *Store) Rows(ctx context.Context, laptop string, chain int, after int64) iter.Seq2[ledger.Link, error] {
	return func(yield func(ledger.Link, error) bool) {
		for {
			links, err := s.page(ctx, laptop, chain, after)
			if err != nil {
				yield(ledger.Link{}, fmt.Errorf("reading the rows of %.200q: %w", laptop, err))
				return
			}
			for _, l := range links {
				if !yield(l, nil) {
					return
				}
				after = l.Seq
			}
			if len(links) < page {
				return
			}
		}
	}
}

func (s *Store) page(ctx context.Context, laptop string, chain int, after int64) (links []ledger.Link, err error) {
	rows, err := s.db.QueryContext(ctx, s.text("SELECT seq, hash, seal, body FROM laptop_rows WHERE laptop = $1 AND chain = $2 AND seq > $3 ORDER BY seq LIMIT $4"), laptop, chain, after, page)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l ledger.Link
		var hash, seal []byte
		if err := rows.Scan(&l.Seq, &hash, &seal, &l.Body); err != nil {
			return nil, err
		}
		copy(l.Hash[:], hash)
		copy(l.Seal[:], seal)
		links = append(links, l)
	}
	return links, rows.Err()
}
