package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/ledger"
)

// A carrier hands over a store in one state of it.
type carrier struct {
	db   *DB
	file *file
	conn *sql.Conn
}

// Carry opens a store for handing it over to another.
func Carry(ctx context.Context, o Options) (ledger.Carried, error) {
	o.ReadOnly = true
	db, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &carrier{db: db}
	if err = db.Err(); err == nil {
		c.file, err = db.reading()
	}
	if err == nil {
		c.conn, err = c.file.read.Conn(ctx)
	}
	if err == nil {
		_, err = c.conn.ExecContext(ctx, "BEGIN")
	}
	var has int
	if err == nil {
		err = c.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has)
	}
	if err == nil && has < version {
		err = fmt.Errorf("it was last written by an older release: let codemode-bridge serve once with it")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", o.Path, err), c.Close())
	}
	return c, nil
}

func (c *carrier) Close() error {
	if c.conn != nil {
		_, _ = c.conn.ExecContext(context.Background(), "ROLLBACK") // nothing was written
		_ = c.conn.Close()
	}
	return c.db.Close()
}

func (c *carrier) Identity() ledger.Identity {
	return ledger.Identity{Store: c.file.id, Key: c.file.key}
}

// scanned yields what a query finds.
func scanned[T any](ctx context.Context, c *sql.Conn, read func(*sql.Rows) (T, error), query string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := c.QueryContext(ctx, query, args...)
		if err != nil {
			yield(none, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			one, err := read(rows)
			if !yield(one, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, err)
		}
	}
}

func (c *carrier) Links(ctx context.Context) iter.Seq2[ledger.Link, error] {
	return scanned(ctx, c.conn, func(rows *sql.Rows) (l ledger.Link, err error) {
		var hash, seal []byte
		err = rows.Scan(&l.Seq, &hash, &seal, &l.Body)
		copy(l.Hash[:], hash)
		copy(l.Seal[:], seal)
		return l, err
	}, "SELECT seq, hash, seal, body FROM rows UNION ALL SELECT seq, hash, seal, body FROM recent ORDER BY seq")
}

func (c *carrier) Journals(ctx context.Context) iter.Seq2[ledger.CarriedJournal, error] {
	return func(yield func(ledger.CarriedJournal, error) bool) {
		runs, err := readRuns(ctx, c.conn, "")
		if err != nil {
			yield(ledger.CarriedJournal{}, err)
			return
		}
		for _, k := range runs {
			j := ledger.CarriedJournal{Run: k.Run, Owner: k.Owner, Request: ledger.LeaseRequest(&k.JournaledRun), State: string(k.State), Configuration: k.Configuration,
				Lease: k.Lease, Began: ledger.Nanos(k.Began), Until: ledger.Nanos(k.Until), Shared: k.shared}
			if k.shared != "" {
				err = c.conn.QueryRowContext(ctx, "SELECT body FROM shared WHERE name = ?", k.shared).Scan(&j.Common)
			}
			for e, wrong := range scanned(ctx, c.conn, func(rows *sql.Rows) (e ledger.CarriedEntry, err error) {
				err = rows.Scan(&e.Kind, &e.Call, &e.Total, &e.Body)
				return e, err
			}, "SELECT kind, call, total, body FROM entries WHERE id > ? AND id < ? ORDER BY id", k.number<<placeBits, (k.number+1)<<placeBits) {
				j.Entries, err = append(j.Entries, e), errors.Join(err, wrong)
			}
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

func (c *carrier) Uses(ctx context.Context) iter.Seq2[ledger.CarriedUse, error] {
	return scanned(ctx, c.conn, func(rows *sql.Rows) (u ledger.CarriedUse, err error) {
		err = rows.Scan(&u.Grant, &u.Used, &u.Last)
		return u, err
	}, "SELECT name, used, last FROM uses")
}

// Receive makes a store of what another hands over. Its file and its key must not exist;
// the file appears when everything is in it.
func Receive(ctx context.Context, o Options, from ledger.Carried) (err error) {
	o.setDefaults()
	for _, path := range []string{o.Path, o.Path + "-wal", o.Key} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already: name a file that is not, or move it and its key away", path)
		}
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return fmt.Errorf("making the audit log's folder: %w", err)
	}
	making := o.Path + ".copying"
	for path, text := range map[string][]byte{making: nil, o.Key: from.Identity().Key} {
		if path == making {
			_ = os.Remove(path) // of a copy that was interrupted
		}
		if err := writeNew(path, text); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			_, _ = os.Remove(making), os.Remove(o.Key)
		}
	}()
	pool, err := connect(making, "rw", 1)
	if err != nil {
		return err
	}
	conn, err := pool.Conn(ctx)
	if err == nil {
		err = receive(ctx, conn, from)
		err = errors.Join(err, conn.Close())
	}
	if err = errors.Join(err, pool.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", making, err)
	}
	return os.Rename(making, o.Path)
}

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making the audit log: %w", err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// receive fills a new file in one transaction.
func receive(ctx context.Context, c *sql.Conn, from ledger.Carried) error {
	exec := func(text string, args ...any) error {
		_, err := c.ExecContext(ctx, text, args...)
		return err
	}
	is := from.Identity()
	if err := exec("PRAGMA synchronous = FULL; BEGIN IMMEDIATE; " + strings.Join(migrations, "") + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", application, version)); err != nil {
		return err
	}
	for name, value := range map[string]string{"oldest": fmt.Sprint(oldestReader), "store": is.Store, "key": ledger.KeyName(is.Key), "seal": ledger.StoreSeal(is.Key, is.Store)} {
		if err := exec("INSERT INTO meta VALUES (?, ?)", name, value); err != nil {
			return err
		}
	}
	for l, err := range from.Links(ctx) {
		if err == nil {
			err = exec("INSERT INTO rows (seq, hash, seal, body) VALUES (?, ?, ?, ?)", l.Seq, l.Hash[:], l.Seal[:], string(l.Body))
		}
		if err != nil {
			return err
		}
	}
	number := int64(0)
	for j, err := range from.Journals(ctx) {
		if number++; err == nil {
			err = receiveJournal(exec, number, &j)
		}
		if err != nil {
			return err
		}
	}
	for u, err := range from.Uses(ctx) {
		if err == nil {
			err = exec("INSERT INTO uses (name, used, last) VALUES (?, ?, ?)", u.Grant, u.Used, u.Last)
		}
		if err != nil {
			return err
		}
	}
	return exec("COMMIT")
}

func receiveJournal(exec func(string, ...any) error, number int64, j *ledger.CarriedJournal) error {
	err := exec("INSERT INTO journals (number, run, owner, wanted, state, began, until, shared) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		number, j.Run, j.Owner, j.Request, j.State, j.Began, j.Until, j.Shared)
	if err == nil && j.Shared != "" {
		err = exec("INSERT OR IGNORE INTO shared (name, hash, body) VALUES (?, ?, ?)", j.Shared, sum(j.Common), append([]byte{}, j.Common...))
	}
	if err == nil && j.Configuration != "" {
		err = exec("INSERT INTO configurations (journal, id) VALUES (?, ?)", number, j.Configuration)
	}
	if err == nil && j.Lease > 0 {
		err = exec("INSERT INTO leases (journal, lease) VALUES (?, ?)", number, j.Lease)
	}
	for i, e := range j.Entries {
		if err == nil {
			err = exec("INSERT INTO entries (id, kind, call, total, body) VALUES (?, ?, ?, ?, ?)", number<<placeBits|int64(i+1), e.Kind, e.Call, e.Total, e.Body)
		}
	}
	return err
}
