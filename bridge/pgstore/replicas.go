package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replica"
)

// forgetReplicas is how long a replica that ended without a word stays in the table.
const forgetReplicas = 24 * time.Hour

// Replicas is a replica.Table in the tables beside the log's, on a connection of its own.
// Its methods may be called concurrently; they wait for each other.
type Replicas struct {
	o    Options
	busy chan struct{} // has a token while conn is used

	conn   *pgx.Conn // nil: there is none yet, or it was lost
	swept  time.Time
	closed sync.Once
}

// NewReplicas makes a table of the replicas. It connects when it is first used.
func NewReplicas(o Options) (*Replicas, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	return &Replicas{o: o, busy: make(chan struct{}, 1)}, nil
}

// with does work on the connection. After an error it is not used again.
func (r *Replicas) with(ctx context.Context, work func(*pgx.Conn) error) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return classed(ctx.Err())
	}
	if r.conn == nil || r.conn.IsClosed() {
		conn, err := r.o.connect(ctx)
		if err != nil {
			return err
		}
		r.conn = conn
	}
	err := work(r.conn)
	if err != nil {
		hangUp(r.conn)
		r.conn = nil
	}
	return classed(err)
}

// Renew makes a replica alive for some time from now. See replica.Table.
func (r *Replicas) Renew(ctx context.Context, me replica.Replica, term time.Duration) (lapsed bool, err error) {
	err = r.with(ctx, func(conn *pgx.Conn) error {
		var b pgx.Batch // one transaction: a bridge that takes over waits for it, or it for that bridge
		b.Queue("SELECT until <= clock_timestamp() FROM replicas WHERE name = $1 FOR UPDATE", me.Name)
		b.Queue(`INSERT INTO replicas (name, machine, version, address, since, until) VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5 * interval '1 microsecond')
			ON CONFLICT (name) DO UPDATE SET version = excluded.version, address = excluded.address, until = clock_timestamp() + $5 * interval '1 microsecond'`,
			me.Name, text(me.Machine), text(me.Version), text(me.Address), term.Microseconds())
		sweeps := time.Since(r.swept) > forgetReplicas
		if sweeps {
			b.Queue("DELETE FROM replicas WHERE until < clock_timestamp() - $1 * interval '1 microsecond'", forgetReplicas.Microseconds())
		}
		results := conn.SendBatch(ctx, &b)
		defer results.Close()
		if err := results.QueryRow().Scan(&lapsed); errors.Is(err, pgx.ErrNoRows) {
			lapsed = true
		} else if err != nil {
			return err
		}
		err := results.Close()
		if err == nil && sweeps {
			r.swept = time.Now()
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("renewing this bridge's place among those that share the store: %w", err)
	}
	return lapsed, nil
}

// Leave removes a replica.
func (r *Replicas) Leave(ctx context.Context, name string) error {
	return r.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DELETE FROM replicas WHERE name = $1", name)
		return err
	})
}

// List returns all replicas, those that have ended of late as well.
func (r *Replicas) List(ctx context.Context) (all []replica.Replica, err error) {
	err = r.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT name, machine, version, address, since, until, until <= clock_timestamp() FROM replicas ORDER BY since, name")
		if err == nil {
			all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one replica.Replica, err error) {
				err = row.Scan(&one.Name, &one.Machine, &one.Version, &one.Address, &one.Since, &one.Until, &one.Gone)
				return one, err
			})
		}
		if older := (*pgconn.PgError)(nil); errors.As(err, &older) && older.Code == "42P01" {
			return nil // an older release made the schema, and no bridge of this one has started
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which bridges share the store: %w", err)
	}
	return all, nil
}

// Close closes the connection.
func (r *Replicas) Close() error {
	r.closed.Do(func() {
		r.busy <- struct{}{}
		if r.conn != nil {
			hangUp(r.conn)
		}
	})
	return nil
}

// ended reports whether a replica is not alive any more, and keeps it from renewing that
// until the transaction is over. One that is not in the table has ended too.
func (t *tx) ended(ctx context.Context, name string) (bool, error) {
	var gone bool
	err := t.conn.QueryRow(ctx, "SELECT until <= clock_timestamp() FROM replicas WHERE name = $1 FOR UPDATE", text(name)).Scan(&gone)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	return gone, err
}

// mayTake returns why a bridge may not acquire a run that another has; nil if it may.
func (t *tx) mayTake(ctx context.Context, from, to ledger.JournaledRun) error {
	if from.Owner == "" || to.Owner == from.Owner || to.Lease == from.Lease {
		return nil
	}
	gone, err := t.ended(ctx, from.Owner)
	if err == nil && !gone {
		err = ledger.Refuse(fmt.Errorf("acquiring run %s from %s: %w", from.Run, from.Owner, ledger.ErrOwnerAlive))
	}
	return err
}

// alive refuses what a replica writes that could not renew its place in time. The lease
// is still its own: nobody has acquired the run.
func (t *tx) alive(ctx context.Context, name string) error {
	if name != t.owner {
		t.owner, t.lapsed = name, false
		err := t.conn.QueryRow(ctx, ownerLapsed, text(name)).Scan(&t.lapsed)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	if t.lapsed {
		return ledger.Refuse(ledger.Unavailable("%w", replica.ErrLapsed))
	}
	return nil
}

// ownerLapsed asks whether a replica has lapsed; no row is one that is none.
const ownerLapsed = "SELECT until <= clock_timestamp() FROM replicas WHERE name = $1"
