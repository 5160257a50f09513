package pgstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/ledger"
)

// A carrier hands over a store in one state of it.
type carrier struct {
	conn *pgx.Conn
	tx   pgx.Tx
	is   identity
}

// Carry opens a store for handing it over to another.
func Carry(ctx context.Context, o Options) (ledger.Carried, error) {
	o.ReadOnly = true
	if err := o.prepare(); err != nil {
		return nil, err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", Where(o.URL), err)
	}
	c := &carrier{conn: conn}
	if c.is, err = o.establish(ctx, conn, nil); err == nil {
		// Whoever receives it may take his time between two chunks.
		_, err = conn.Exec(ctx, "SET idle_in_transaction_session_timeout = 0")
	}
	if err == nil {
		c.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	}
	if err != nil {
		hangUp(conn)
		return nil, fmt.Errorf("opening %s: %w", Where(o.URL), err)
	}
	return c, nil
}

func (c *carrier) Close() error {
	hangUp(c.conn)
	return nil
}

func (c *carrier) Identity() ledger.Identity { return ledger.Identity{Store: c.is.id, Key: c.is.key} }

// Links reads in chunks: one statement may not take long.
func (c *carrier) Links(ctx context.Context) iter.Seq2[ledger.Link, error] {
	return func(yield func(ledger.Link, error) bool) {
		for after := int64(0); ; {
			found, err := c.tx.Query(ctx, "SELECT seq, hash, seal, body FROM log WHERE seq > $1 ORDER BY seq LIMIT $2", after, ledger.CarriedRows)
			if err != nil {
				yield(ledger.Link{}, classed(err))
				return
			}
			all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (l ledger.Link, err error) {
				var hash, seal []byte
				var body string
				err = row.Scan(&l.Seq, &hash, &seal, &body)
				copy(l.Hash[:], hash)
				copy(l.Seal[:], seal)
				l.Body = []byte(body)
				return l, err
			})
			if err != nil {
				yield(ledger.Link{}, classed(err))
				return
			}
			for _, l := range all {
				if after = l.Seq; !yield(l, nil) {
					return
				}
			}
			if len(all) < ledger.CarriedRows {
				return
			}
		}
	}
}

func (c *carrier) Journals(ctx context.Context) iter.Seq2[ledger.CarriedJournal, error] {
	return func(yield func(ledger.CarriedJournal, error) bool) {
		runs, err := readRuns(ctx, c.tx, "")
		if err != nil {
			yield(ledger.CarriedJournal{}, err)
			return
		}
		for _, k := range runs {
			j, err := c.journal(ctx, &k)
			if !yield(j, classed(err)) || err != nil {
				return
			}
		}
	}
}

func (c *carrier) journal(ctx context.Context, k *journaledRun) (j ledger.CarriedJournal, err error) {
	j = ledger.CarriedJournal{Run: k.Run, Owner: k.Owner, Request: ledger.LeaseRequest(&k.JournaledRun), State: string(k.State), Configuration: k.Configuration,
		Lease: k.Lease, Began: ledger.Nanos(k.Began), Until: ledger.Nanos(k.Until), Shared: k.shared}
	if k.shared != "" {
		if err := c.tx.QueryRow(ctx, "SELECT body FROM shared WHERE name = $1", k.shared).Scan(&j.Common); err != nil {
			return j, err
		}
	}
	found, err := c.tx.Query(ctx, "SELECT kind, call, total, body FROM entries WHERE run = $1 ORDER BY place", k.Run)
	if err != nil {
		return j, err
	}
	j.Entries, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (e ledger.CarriedEntry, err error) {
		err = row.Scan(&e.Kind, &e.Call, &e.Total, &e.Body)
		return e, err
	})
	return j, err
}

func (c *carrier) Uses(ctx context.Context) iter.Seq2[ledger.CarriedUse, error] {
	return func(yield func(ledger.CarriedUse, error) bool) {
		found, err := c.tx.Query(ctx, "SELECT name, used, last FROM uses")
		var all []ledger.CarriedUse
		if err == nil {
			all, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (u ledger.CarriedUse, err error) {
				err = row.Scan(&u.Grant, &u.Used, &u.Last)
				return u, err
			})
		}
		if err != nil {
			yield(ledger.CarriedUse{}, classed(err))
			return
		}
		for _, u := range all {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// Receive makes a store of what another hands over, in one transaction. There must be
// none in the schema, or one to which this was to be handed over before.
func Receive(ctx context.Context, o Options, from ledger.Carried) error {
	if err := o.prepare(); err != nil {
		return err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return fmt.Errorf("opening %s: %w", Where(o.URL), err)
	}
	defer hangUp(conn)
	want := from.Identity()
	is, err := o.establish(ctx, conn, &identity{want.Store, want.Key})
	if err == nil && is.id != want.Store {
		err = errors.New("there is another store already: name another schema with ?search_path=NAME")
	}
	if err == nil {
		_, err = conn.Exec(ctx, "SET idle_in_transaction_session_timeout = 0")
	}
	if err == nil {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return receive(ctx, tx, from) })
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", Where(o.URL), classedBut(err))
	}
	return nil
}

func receive(ctx context.Context, tx pgx.Tx, from ledger.Carried) error {
	var empty bool
	if _, err := tx.Exec(ctx, "UPDATE heads SET changes = changes + 1"); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, "SELECT NOT EXISTS (SELECT 1 FROM log) AND NOT EXISTS (SELECT 1 FROM journals)").Scan(&empty); err != nil {
		return err
	}
	if !empty {
		return errors.New("the store has rows already: name another schema with ?search_path=NAME")
	}
	var chunk rows
	for l, err := range from.Links(ctx) {
		if err != nil {
			return err
		}
		c, err := columnsOf(l.Body)
		if err != nil {
			return err
		}
		if chunk.add(l, c); len(chunk.seqs) == ledger.CarriedRows {
			if _, err := tx.Exec(ctx, insertRows, chunk.args()...); err != nil {
				return err
			}
			chunk = rows{}
		}
	}
	if _, err := tx.Exec(ctx, insertRows, chunk.args()...); err != nil {
		return err
	}
	for j, err := range from.Journals(ctx) {
		if err == nil {
			err = receiveJournal(ctx, tx, &j)
		}
		if err != nil {
			return err
		}
	}
	for u, err := range from.Uses(ctx) {
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO uses (name, used, last) VALUES ($1, $2, $3)", text(u.Grant), u.Used, u.Last)
		}
		if err != nil {
			return err
		}
	}
	return receiveDocuments(ctx, tx, from)
}

// receiveDocuments copies the documents of a database, which are encrypted with the same
// key; in a file's folder, documents are in files.
func receiveDocuments(ctx context.Context, into pgx.Tx, from ledger.Carried) (err error) {
	var all []Document
	switch c := from.(type) {
	case *carrier:
		all, err = documentsIn(ctx, c.tx)
	case WithDocuments:
		all = c.Documents
	}
	for _, d := range all {
		if err == nil {
			_, err = into.Exec(ctx, "INSERT INTO documents (kind, name, body, changed) VALUES ($1, $2, $3, $4)", d.Kind, d.Name, d.Body, time.Unix(0, d.Changed))
		}
	}
	return err
}

func receiveJournal(ctx context.Context, tx pgx.Tx, j *ledger.CarriedJournal) error {
	_, err := tx.Exec(ctx, "INSERT INTO journals (run, owner, wanted, state, began, until, shared, configuration, lease) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		text(j.Run), text(j.Owner), text(j.Request), j.State, j.Began, j.Until, text(j.Shared), text(j.Configuration), j.Lease)
	if err == nil && j.Shared != "" {
		hash := sha256.Sum256(j.Common)
		_, err = tx.Exec(ctx, "INSERT INTO shared (name, hash, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", text(j.Shared), hash[:], append([]byte{}, j.Common...))
	}
	for i, e := range j.Entries {
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO entries (run, place, kind, call, total, body) VALUES ($1, $2, $3, $4, $5, $6)", text(j.Run), i+1, e.Kind, e.Call, e.Total, e.Body)
		}
	}
	return err
}
