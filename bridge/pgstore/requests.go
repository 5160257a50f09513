package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/approval"
)

// A RequestStore is an approval.Store in the tables beside the log's. Every change is
// one transaction that begins with the lock of the requests. Its methods may be called
// concurrently.
type RequestStore struct{ *tables }

// OpenRequests opens the requests, and makes the store if there is none.
func OpenRequests(ctx context.Context, o Options) (*RequestStore, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the requests in %s: %w", Where(o.URL), err)
	}
	_, err = o.establish(ctx, conn, nil)
	hangUp(conn)
	if err != nil {
		return nil, fmt.Errorf("opening the requests in %s: %w", Where(o.URL), err)
	}
	pool, err := o.pool(context.WithoutCancel(ctx), readers)
	if err != nil {
		return nil, err
	}
	return &RequestStore{newTables(&o, pool, "requests")}, nil
}

// Close ends the watching and closes the connections. It is called once.
func (r *RequestStore) Close() error {
	r.watch.close()
	r.pool.Close()
	return nil
}

// Put stores a new request, unless another bridge has acquired its run: then the error is
// approval.ErrNotOwner. A bridge that was halted may not know that yet.
func (r *RequestStore) Put(ctx context.Context, e approval.StoredRequest) error {
	body, err := encode(e)
	if err != nil {
		return fmt.Errorf("writing request %s: %w", e.ID, err)
	}
	err = r.change(ctx, func(t pgx.Tx) error {
		if err := mayAsk(ctx, t, &e); err != nil {
			return err
		}
		_, err := t.Exec(ctx, "INSERT INTO requests (id, run, until, over, body) VALUES ($1, $2, $3, $4, $5)",
			e.ID, text(e.Run), e.Until.UnixNano(), settledAt(&e), body)
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping request %s: %w", e.ID, err)
	}
	return nil
}

// mayAsk refuses a request of a run that is another bridge's. Nobody acquires the run
// before the transaction ends.
func mayAsk(ctx context.Context, t pgx.Tx, e *approval.StoredRequest) error {
	if e.Lease == 0 {
		return nil
	}
	var owner string
	var lease int64
	switch err := t.QueryRow(ctx, "SELECT owner, lease FROM journals WHERE run = $1 FOR SHARE", text(e.Run)).Scan(&owner, &lease); {
	case errors.Is(err, pgx.ErrNoRows): // its journal was given up
		return nil
	case err != nil:
		return err
	case owner != text(e.Bridge) || lease != e.Lease:
		return approval.ErrNotOwner
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
func settledAt(e *approval.StoredRequest) *int64 {
	if e.Verdict == nil {
		return nil
	}
	at := e.Verdict.Time.UnixNano()
	return &at
}

// readBody reads a row whose one column is JSON.
func readBody(row pgx.Row, into any) error {
	var body string
	if err := row.Scan(&body); err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// list reads rows whose one column is JSON.
func list[T any](ctx context.Context, from querier, query string, args ...any) ([]T, error) {
	rows, err := from.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("reading the requests: %w", classed(err))
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
	return all, classed(rows.Err())
}

// Update changes one request.
func (r *RequestStore) Update(ctx context.Context, id string, change func(*approval.StoredRequest) error) (e approval.StoredRequest, err error) {
	var refused error // of change: the request is left as it is, and returned
	err = r.change(ctx, func(t pgx.Tx) error {
		e, refused = approval.StoredRequest{}, nil
		if err := readBody(t.QueryRow(ctx, "SELECT body FROM requests WHERE id = $1", text(id)), &e); err != nil {
			return err
		}
		next := e.Clone()
		if refused = change(&next); refused != nil {
			return errSame
		}
		body, err := encode(next)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, "UPDATE requests SET until = $1, over = $2, body = $3 WHERE id = $4", next.Until.UnixNano(), settledAt(&next), body, text(id))
		if err == nil {
			e = next
		}
		return err
	})
	switch {
	case errors.Is(err, errSame):
		return e, refused
	case errors.Is(err, pgx.ErrNoRows):
		return approval.StoredRequest{}, approval.ErrUnknown
	case err != nil:
		return approval.StoredRequest{}, fmt.Errorf("changing request %s: %w", id, err)
	}
	return e, nil
}

// Requests returns requests, the oldest first.
func (r *RequestStore) Requests(ctx context.Context, f approval.Filter) ([]approval.StoredRequest, error) {
	c := new(condition)
	if f.ID != "" {
		c.add("id = ?", text(f.ID))
	}
	if f.Run != "" {
		c.add("run = ?", text(f.Run))
	}
	if !f.Open.IsZero() {
		c.add("over IS NULL AND until > ?", f.Open.UnixNano())
	}
	limit := ""
	if f.Newest > 0 {
		limit = " LIMIT " + strconv.Itoa(f.Newest)
	}
	return list[approval.StoredRequest](ctx, r.pool, "SELECT body FROM (SELECT seq, body FROM requests WHERE "+c.String()+" ORDER BY seq DESC"+limit+") AS newest ORDER BY seq", c.args...)
}

// AddGrant stores a new grant.
func (r *RequestStore) AddGrant(ctx context.Context, g approval.Grant) error {
	body, err := encode(g)
	if err != nil {
		return fmt.Errorf("writing grant %s: %w", g.ID, err)
	}
	return r.change(ctx, func(t pgx.Tx) error {
		_, err := t.Exec(ctx, "INSERT INTO grants (id, body) VALUES ($1, $2)", g.ID, body)
		return err
	})
}

// Grants returns all grants, the oldest first.
func (r *RequestStore) Grants(ctx context.Context) ([]approval.Grant, error) {
	return list[approval.Grant](ctx, r.pool, "SELECT body FROM grants ORDER BY seq")
}

// UpdateGrant changes one grant.
func (r *RequestStore) UpdateGrant(ctx context.Context, id string, change func(*approval.Grant) error) error {
	err := r.change(ctx, func(t pgx.Tx) error {
		var g approval.Grant
		if err := readBody(t.QueryRow(ctx, "SELECT body FROM grants WHERE id = $1", text(id)), &g); err != nil {
			return err
		}
		if err := change(&g); err != nil {
			return err
		}
		if g.Left <= 0 {
			_, err := t.Exec(ctx, "DELETE FROM grants WHERE id = $1", text(id))
			return err
		}
		body, err := encode(g)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, "UPDATE grants SET body = $1 WHERE id = $2", body, text(id))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return approval.ErrUnknown
	}
	return err
}

// DropGrants drops grants.
func (r *RequestStore) DropGrants(ctx context.Context, drop func(approval.Grant) bool) error {
	return r.change(ctx, func(t pgx.Tx) error {
		all, err := list[approval.Grant](ctx, t, "SELECT body FROM grants")
		if err != nil {
			return err
		}
		for _, g := range all {
			if !drop(g) {
				continue
			}
			if _, err := t.Exec(ctx, "DELETE FROM grants WHERE id = $1", g.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// ChangePendingConfig changes the pending configuration of a file.
func (r *RequestStore) ChangePendingConfig(ctx context.Context, file string, change func(*approval.PendingConfig) (*approval.PendingConfig, error)) (h *approval.PendingConfig, err error) {
	err = r.change(ctx, func(t pgx.Tx) error {
		var old *approval.PendingConfig
		var kept approval.PendingConfig
		switch err := readBody(t.QueryRow(ctx, "SELECT body FROM held WHERE file = $1", text(file)), &kept); {
		case err == nil:
			old = &kept
		case !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("reading what is held of %s: %w", file, err)
		}
		if h, err = change(old); err != nil {
			return err
		}
		if h == old {
			return errSame
		}
		if h == nil {
			_, err = t.Exec(ctx, "DELETE FROM held WHERE file = $1", text(file))
			return err
		}
		body, err := encode(h)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, "INSERT INTO held (file, body) VALUES ($1, $2) ON CONFLICT (file) DO UPDATE SET body = excluded.body", text(file), body)
		return err
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return h, err
}

// Forget drops requests that have ended.
func (r *RequestStore) Forget(ctx context.Context, before time.Time) error {
	return r.change(ctx, func(t pgx.Tx) error {
		_, err := t.Exec(ctx, "DELETE FROM requests WHERE coalesce(over, until) < $1", before.UnixNano())
		return err
	})
}

// Held returns what waits for an approver, by its configuration file.
func (r *RequestStore) Held(ctx context.Context) (map[string]*approval.PendingConfig, error) {
	return heldIn(ctx, r.pool)
}

func heldIn(ctx context.Context, from querier) (map[string]*approval.PendingConfig, error) {
	rows, err := from.Query(ctx, "SELECT file, body FROM held")
	if err != nil {
		return nil, classed(err)
	}
	defer rows.Close()
	all := make(map[string]*approval.PendingConfig)
	for rows.Next() {
		var file, body string
		one := new(approval.PendingConfig)
		if err := rows.Scan(&file, &body); err != nil {
			return nil, classed(err)
		}
		if err := json.Unmarshal([]byte(body), one); err != nil {
			return nil, fmt.Errorf("reading what is held of %s: %w", file, err)
		}
		all[file] = one
	}
	return all, classed(rows.Err())
}
