package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"codemode-bridge/bridge/ledger"
)

// A querier reads: a connection, a pool or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
	Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
}

// headQuery reads the last row.
const headQuery = "SELECT seq, hash, seal FROM log ORDER BY seq DESC LIMIT 1"

// Head returns the last row's number and hash.
func (db *DB) Head(ctx context.Context) (int64, ledger.Hash, error) {
	h, _, err := readHead(db.pool.QueryRow(ctx, headQuery))
	if err != nil {
		return 0, ledger.Hash{}, reading(err)
	}
	return h.seq, h.hash, nil
}

func reading(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the audit log: %w", classed(err))
}

// Checkpoint signs the present head.
func (db *DB) Checkpoint(ctx context.Context) (ledger.Checkpoint, error) {
	seq, hash, err := db.Head(ctx)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	c := ledger.Checkpoint{Store: db.id, Seq: seq, Hash: hash, Time: db.o.Clock().UTC()}
	c.Sign(db.key)
	return c, nil
}

// Rows reads in pages, so that a reader who takes his time holds nothing up.
func (db *DB) Rows(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		size, found := 100, 0
		if q.Limit > 0 {
			size = min(size, q.Limit)
		}
		for {
			page, err := db.page(ctx, q, size)
			if err != nil {
				yield(ledger.Row{}, reading(err))
				return
			}
			for _, row := range page {
				if !q.Selects(row) {
					continue
				}
				if found++; !yield(row, nil) || found == q.Limit {
					return
				}
			}
			if len(page) < size {
				return
			}
			if last := page[len(page)-1].Seq; q.Newest {
				q.Before = last
			} else {
				q.After = last
			}
			size = 2000
		}
	}
}

// page reads up to size rows that q may select.
func (db *DB) page(ctx context.Context, q ledger.Query, size int) (page []ledger.Row, err error) {
	where := filter(q)
	order := ""
	if q.Newest {
		order = " DESC"
	}
	statement := "SELECT seq, hash, body FROM log WHERE " + where.String() + " ORDER BY seq" + order + " LIMIT " + strconv.Itoa(size)
	found, err := db.pool.Query(ctx, statement, where.args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var row ledger.Row
		var hash []byte
		var body string
		if err := found.Scan(&row.Seq, &hash, &body); err != nil {
			return nil, err
		}
		copy(row.Hash[:], hash)
		if row.Record, err = ledger.Decode([]byte(body)); err != nil {
			return nil, ledger.Damaged("row %d: %v", row.Seq, err)
		}
		page = append(page, row)
	}
	return page, found.Err()
}

// A condition is SQL with its arguments.
type condition struct {
	text []string
	args []any
}

// add adds a condition in which each ? stands for the next argument.
func (c *condition) add(text string, args ...any) {
	for _, arg := range args {
		c.args = append(c.args, arg)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.text = append(c.text, text)
}

func (c *condition) String() string { return strings.Join(append(c.text, "true"), " AND ") }

// plain is text that stands in JSON as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:-]+$`)

// filter says of a query what SQL can say; every row that the query selects meets it.
func filter(q ledger.Query) *condition {
	c := new(condition)
	if q.After > 0 {
		c.add("seq > ?", q.After)
	}
	if q.Before != 0 {
		c.add("seq < ?", q.Before)
	}
	if !q.Since.IsZero() {
		c.add("time >= ?", ledger.Sortable(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("time < ?", ledger.Sortable(q.Until))
	}
	var events []string
	for _, e := range q.Events {
		events = append(events, string(e))
	}
	c.among("run", q.Runs)
	c.among("event", events)
	c.among("disposition", q.Dispositions)
	c.among("outcome", q.Outcomes)
	c.among("risk", q.Risks)
	c.mentioned("session", q.Sessions)
	c.mentioned("client", q.Clients)
	c.mentioned("profile", q.Profiles)
	c.mentioned("channel", q.Channels)
	c.mentioned("server", q.Servers)
	if len(q.Approvers) > 0 {
		var ways []string
		var args []any
		for _, name := range q.Approvers {
			ways, args = append(ways, "strpos(people, ?) > 0"), append(args, text(name))
		}
		c.add("people <> '' AND ("+strings.Join(ways, " OR ")+")", args...)
	}
	if prefix, _, some := strings.Cut(q.Tool, "*"); q.Tool != "" && !some {
		c.add("tool = ?", text(prefix))
	} else if prefix != "" {
		c.add("tool >= ? AND tool < ?", text(prefix), text(prefix)+"\U0010ffff")
	}
	for _, path := range slices.Sorted(maps.Keys(q.Fields)) {
		if value := q.Fields[path]; plain.MatchString(value) {
			c.add("strpos(body, ?) > 0", value)
		}
	}
	return c
}

// among wants a column to be one of a list.
func (c *condition) among(column string, list []string) {
	if len(list) == 0 {
		return
	}
	values := make([]string, len(list))
	for i, v := range list {
		values[i] = text(v)
	}
	c.add(column+" = ANY(?)", values)
	if column == "run" && !slices.Contains(values, "") {
		c.add("run <> ''") // which its index has
	}
}

// mentioned wants a member of the record's JSON to be one of a list, if all of it stands
// in JSON as it is.
func (c *condition) mentioned(member string, list []string) {
	var ways []string
	var args []any
	for _, v := range list {
		if !plain.MatchString(v) {
			return
		}
		ways, args = append(ways, "strpos(body, ?) > 0"), append(args, `"`+member+`":"`+v+`"`)
	}
	if len(ways) > 0 {
		c.add("("+strings.Join(ways, " OR ")+")", args...)
	}
}

// snapshot has read see one state of the store, whoever writes.
func (db *DB) snapshot(ctx context.Context, read func(pgx.Tx) error) error {
	t, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return classed(err)
	}
	defer t.Rollback(context.WithoutCancel(ctx))
	return read(t)
}

// rowAt reads one row; ErrNoRows if there is none.
func rowAt(ctx context.Context, from querier, seq int64) (l ledger.Link, err error) {
	var hash, seal []byte
	var body string
	err = from.QueryRow(ctx, "SELECT hash, seal, body FROM log WHERE seq = $1", seq).Scan(&hash, &seal, &body)
	l.Seq, l.Body = seq, []byte(body)
	copy(l.Hash[:], hash)
	copy(l.Seal[:], seal)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		err = classed(err)
	}
	return l, err
}
