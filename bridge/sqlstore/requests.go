package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// RequestStore is an approval.Store in a SQLite file of its own: it has the
// requests to people and their grants. It is separate from the audit log because
// the two differ in kind. The log is evidence, chained and never changed; these
// are working papers, which several processes change and which may be thrown
// away, since the log has what was decided.
//
// Every change is one synced transaction that begins with the write lock.
// Its methods may be called concurrently.
type RequestStore struct {
	path string
	info os.FileInfo // of the file that was opened
	pool *sql.DB

	closed chan struct{} // closed by Close
	ended  sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{}
	watching bool // a goroutine watches for changes of other processes
}

const (
	lookEvery = 100 * time.Millisecond // between looks at the file for changes of other processes
	lookAgain = time.Second            // after one that failed
)

const requestsSchema = `
CREATE TABLE IF NOT EXISTS requests (
	seq   INTEGER PRIMARY KEY AUTOINCREMENT,
	id    TEXT NOT NULL UNIQUE,
	run   TEXT NOT NULL,
	until INTEGER NOT NULL,   -- unix nanoseconds: when it is answered no
	over  INTEGER,            -- when it was settled; null until then
	body  TEXT NOT NULL       -- approval.Entry as JSON
);
CREATE INDEX IF NOT EXISTS requests_run ON requests (run);
CREATE INDEX IF NOT EXISTS requests_open ON requests (until) WHERE over IS NULL;
CREATE TABLE IF NOT EXISTS grants (
	seq  INTEGER PRIMARY KEY AUTOINCREMENT,
	id   TEXT NOT NULL UNIQUE,
	body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS held (
	file TEXT PRIMARY KEY,
	body TEXT NOT NULL        -- approval.Held as JSON
);
`

// requestsVersion is the version of that schema, in user_version.
const requestsVersion = 1

// OpenRequests opens the file, and makes it and its folder if they do not exist.
func OpenRequests(ctx context.Context, path string) (*RequestStore, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the requests: %w", err)
	}
	// An existing file is not opened here: closing it would drop the locks that
	// SQLite has on it for this process.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the file of the requests: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening the requests: %w", err)
	}
	pool, err := connect(path, "rw", 8)
	if err != nil {
		return nil, fmt.Errorf("opening the requests: %w", err)
	}
	r := &RequestStore{path: path, info: info, pool: pool, closed: make(chan struct{}), changed: make(chan struct{})}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the requests in %s: %w", path, err), pool.Close())
	}
	return r, nil
}

func (r *RequestStore) prepare(ctx context.Context) error {
	var mode string
	if err := r.pool.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	return r.change(ctx, func(c *sql.Conn) error {
		var has int
		if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
			return err
		}
		if has > requestsVersion {
			return &ledger.NewerError{Has: has, Oldest: has, Knows: requestsVersion}
		}
		_, err := c.ExecContext(ctx, requestsSchema+fmt.Sprintf("PRAGMA user_version = %d", requestsVersion))
		return err
	})
}

// Close ends the watching and closes the file. It is called once.
func (r *RequestStore) Close() error {
	close(r.closed)
	r.ended.Wait()
	return r.pool.Close()
}

// same returns an error if the path no longer leads to the file that is open:
// somebody who opens it now, such as a terminal, sees other requests than this
// process.
func (r *RequestStore) same() error {
	info, err := os.Stat(r.path)
	if err == nil && os.SameFile(info, r.info) {
		return nil
	}
	return fmt.Errorf("the file of the requests, %s, was moved or replaced after it was opened: put it back, or start codemode-bridge again", r.path)
}

// change runs do in a transaction that has the write lock from its start.
func (r *RequestStore) change(ctx context.Context, do func(c *sql.Conn) error) (err error) {
	ctx = context.WithoutCancel(ctx) // a change is short, and whole or not at all
	if err := r.same(); err != nil {
		return err
	}
	c, err := r.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			_, err = c.ExecContext(ctx, "COMMIT")
		}
		if err != nil {
			_, undo := c.ExecContext(ctx, "ROLLBACK")
			if undo != nil { // the connection can no longer be used
				drop(c)
			}
			return
		}
		r.changedNow()
	}()
	if err := r.same(); err != nil { // the lock may have been waited for
		return err
	}
	return do(c)
}

// drop closes a connection that is not to be used again.
func drop(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
}

// Put stores a new request.
func (r *RequestStore) Put(ctx context.Context, e approval.StoredRequest) error {
	body, err := encode(e)
	if err != nil {
		return fmt.Errorf("writing request %s: %w", e.ID, err)
	}
	err = r.change(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "INSERT INTO requests (id, run, until, over, body) VALUES (?, ?, ?, ?, ?)",
			e.ID, e.Run, e.Until.UnixNano(), settledAt(&e), body)
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping request %s: %w", e.ID, err)
	}
	return nil
}

// encode writes v as it is: what people are shown keeps its <, > and &.
func encode(v any) (string, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return text.String(), err
}

// settledAt returns when a request was settled, or nil.
func settledAt(e *approval.StoredRequest) any {
	if e.Verdict == nil {
		return nil
	}
	return e.Verdict.Time.UnixNano()
}

// Update changes one request.
func (r *RequestStore) Update(ctx context.Context, id string, change func(*approval.StoredRequest) error) (e approval.StoredRequest, err error) {
	var refused error // of change: the request is left as it is, and returned
	err = r.change(ctx, func(c *sql.Conn) error {
		e, refused = approval.StoredRequest{}, nil
		if err := readBody(c.QueryRowContext(ctx, "SELECT body FROM requests WHERE id = ?", id), &e); err != nil {
			return err
		}
		next := e.Clone()
		if refused = change(&next); refused != nil {
			return nil
		}
		body, err := encode(next)
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "UPDATE requests SET until = ?, over = ?, body = ? WHERE id = ?", next.Until.UnixNano(), settledAt(&next), body, id)
		e = next
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return approval.StoredRequest{}, approval.ErrUnknown
	case err != nil:
		return approval.StoredRequest{}, fmt.Errorf("changing request %s: %w", id, err)
	}
	return e, refused
}

// readBody reads a row whose one column is JSON.
func readBody(row interface{ Scan(...any) error }, into any) error {
	var body string
	if err := row.Scan(&body); err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// Requests returns requests, the oldest first.
func (r *RequestStore) Requests(ctx context.Context, f approval.Filter) ([]approval.StoredRequest, error) {
	where, args := "1", []any{}
	if f.ID != "" {
		where, args = where+" AND id = ?", append(args, f.ID)
	}
	if f.Run != "" {
		where, args = where+" AND run = ?", append(args, f.Run)
	}
	if !f.Open.IsZero() {
		where, args = where+" AND over IS NULL AND until > ?", append(args, f.Open.UnixNano())
	}
	limit := -1
	if f.Newest > 0 {
		limit = f.Newest
	}
	query := "SELECT body FROM (SELECT seq, body FROM requests WHERE " + where + " ORDER BY seq DESC LIMIT ?) ORDER BY seq"
	if err := r.same(); err != nil {
		return nil, err
	}
	return list[approval.StoredRequest](ctx, r.pool, query, append(args, limit)...)
}

// list reads rows whose one column is JSON.
func list[T any](ctx context.Context, from interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, query string, args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("reading the requests: %w", err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := readBody(rows, &one); err != nil {
			return nil, fmt.Errorf("reading the requests: %w", err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// AddGrant stores a new grant.
func (r *RequestStore) AddGrant(ctx context.Context, g approval.Grant) error {
	body, err := encode(g)
	if err != nil {
		return fmt.Errorf("writing grant %s: %w", g.ID, err)
	}
	return r.change(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "INSERT INTO grants (id, body) VALUES (?, ?)", g.ID, body)
		return err
	})
}

// Grants returns all grants, the oldest first.
func (r *RequestStore) Grants(ctx context.Context) ([]approval.Grant, error) {
	if err := r.same(); err != nil {
		return nil, err
	}
	return list[approval.Grant](ctx, r.pool, "SELECT body FROM grants ORDER BY seq")
}

// UpdateGrant changes one grant.
func (r *RequestStore) UpdateGrant(ctx context.Context, id string, change func(*approval.Grant) error) error {
	err := r.change(ctx, func(c *sql.Conn) error {
		var g approval.Grant
		if err := readBody(c.QueryRowContext(ctx, "SELECT body FROM grants WHERE id = ?", id), &g); err != nil {
			return err
		}
		if err := change(&g); err != nil {
			return err
		}
		if g.Left <= 0 {
			_, err := c.ExecContext(ctx, "DELETE FROM grants WHERE id = ?", id)
			return err
		}
		body, err := encode(g)
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "UPDATE grants SET body = ? WHERE id = ?", body, id)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return approval.ErrUnknown
	}
	return err
}

// DropGrants drops grants.
func (r *RequestStore) DropGrants(ctx context.Context, drop func(approval.Grant) bool) error {
	return r.change(ctx, func(c *sql.Conn) error {
		all, err := list[approval.Grant](ctx, c, "SELECT body FROM grants")
		if err != nil {
			return err
		}
		for _, g := range all {
			if !drop(g) {
				continue
			}
			if _, err := c.ExecContext(ctx, "DELETE FROM grants WHERE id = ?", g.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// ChangePendingConfig changes the pending configuration of a file.
func (r *RequestStore) ChangePendingConfig(ctx context.Context, file string, change func(*approval.PendingConfig) (*approval.PendingConfig, error)) (h *approval.PendingConfig, err error) {
	err = r.change(ctx, func(c *sql.Conn) error {
		var old *approval.PendingConfig
		var kept approval.PendingConfig
		switch err := readBody(c.QueryRowContext(ctx, "SELECT body FROM held WHERE file = ?", file), &kept); {
		case err == nil:
			old = &kept
		case !errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("reading what is held of %s: %w", file, err)
		}
		if h, err = change(old); err != nil {
			return err
		}
		if h == old {
			return errSame
		}
		if h == nil {
			_, err = c.ExecContext(ctx, "DELETE FROM held WHERE file = ?", file)
			return err
		}
		body, err := encode(h)
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "INSERT INTO held (file, body) VALUES (?, ?) ON CONFLICT (file) DO UPDATE SET body = excluded.body", file, body)
		return err
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return h, err
}

// errSame ends a transaction that changed nothing, so that nobody is notified.
var errSame = errors.New("nothing was changed")

// Forget drops requests that have ended.
func (r *RequestStore) Forget(ctx context.Context, before time.Time) error {
	return r.change(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "DELETE FROM requests WHERE coalesce(over, until) < ?", before.UnixNano())
		return err
	})
}

// Changed returns a channel that the next change closes. The first call starts a
// goroutine that watches for changes of other processes until Close.
func (r *RequestStore) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watching {
		r.watching = true
		r.ended.Go(r.follow)
	}
	return r.changed
}

// follow reports changes of other processes. If it can no longer watch the file it
// reports a change once, so that those who wait see the error themselves, and once
// more when it can watch again.
func (r *RequestStore) follow() {
	ctx := context.Background() // it ends with Close, and not with whoever asked first
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	var c *sql.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	var seen int64
	failing := false
	for {
		now, err := r.look(ctx, &c)
		if now != seen || failing != (err != nil) {
			r.changedNow()
		}
		seen, failing = now, err != nil
		if failing {
			timer.Reset(lookAgain)
		} else {
			timer.Reset(lookEvery)
		}
		select {
		case <-r.closed:
			return
		case <-timer.C:
		}
	}
}

// look returns a value that changes when others change the file, as seen from the
// connection c, which it opens if there is none and drops after an error.
func (r *RequestStore) look(ctx context.Context, c **sql.Conn) (version int64, err error) {
	if err = r.same(); err == nil && *c == nil {
		*c, err = r.pool.Conn(ctx)
	}
	if err == nil {
		err = (*c).QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	}
	if err != nil {
		if *c != nil {
			drop(*c)
			*c = nil
		}
		return 0, err
	}
	return version, nil
}

// changedNow tells those who wait that something has changed.
func (r *RequestStore) changedNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Held returns what waits for an approver, by its configuration file.
func (r *RequestStore) Held(ctx context.Context) (map[string]*approval.PendingConfig, error) {
	rows, err := r.pool.QueryContext(ctx, "SELECT file, body FROM held")
	if err != nil {
		return nil, fmt.Errorf("reading what is held: %w", err)
	}
	defer rows.Close()
	all := make(map[string]*approval.PendingConfig)
	for rows.Next() {
		var file, body string
		one := new(approval.PendingConfig)
		if err := rows.Scan(&file, &body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(body), one); err != nil {
			return nil, fmt.Errorf("reading what is held of %s: %w", file, err)
		}
		all[file] = one
	}
	return all, rows.Err()
}
