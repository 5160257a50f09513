package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// A Snapshot is all that a store has, in one state of it: what [Carry] hands over, and what
// is kept in other tables.
type Snapshot struct {
	*carrier
	secret []byte
}

// Snap opens a store for reading all of it. It holds up nobody who writes.
func Snap(ctx context.Context, o Options) (*Snapshot, error) {
	c, err := Carry(ctx, o)
	if err != nil {
		return nil, err
	}
	secret, err := o.secret(false)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Snapshot{c.(*carrier), secret}, nil
}

// WrappedKey returns the store's key, encrypted under what the options name as its key.
func (s *Snapshot) WrappedKey() (string, error) { return wrap(s.secret, s.is.id, s.is.key) }

// UnwrapKey decrypts what WrappedKey returned for a store.
func UnwrapKey(storeKey []byte, store, wrapped string) ([]byte, error) {
	return unwrap(storeKey, store, wrapped)
}

// Requests returns all requests, the oldest first.
func (s *Snapshot) Requests(ctx context.Context) ([]approval.StoredRequest, error) {
	return list[approval.StoredRequest](ctx, s.tx, "SELECT body FROM requests ORDER BY seq")
}

// Grants returns all grants, the oldest first.
func (s *Snapshot) Grants(ctx context.Context) ([]approval.Grant, error) {
	return list[approval.Grant](ctx, s.tx, "SELECT body FROM grants ORDER BY seq")
}

// Held returns what waits for an approver, by its configuration file.
func (s *Snapshot) Held(ctx context.Context) (map[string]*approval.PendingConfig, error) {
	return heldIn(ctx, s.tx)
}

// A Document is what machines share, encrypted with the store's key. The time is in unix
// nanoseconds.
type Document struct {
	Kind, Name string
	Body       []byte
	Changed    int64
}

// Documents returns all documents. A store of an older release has none.
func (s *Snapshot) Documents(ctx context.Context) ([]Document, error) { return documentsIn(ctx, s.tx) }

// WithDocuments is a store that is handed over together with documents.
type WithDocuments struct {
	ledger.Carried
	Documents []Document
}

func documentsIn(ctx context.Context, from pgx.Tx) ([]Document, error) {
	var there bool
	if err := from.QueryRow(ctx, "SELECT to_regclass('documents') IS NOT NULL").Scan(&there); err != nil || !there {
		return nil, classed(err)
	}
	rows, err := from.Query(ctx, "SELECT kind, name, body, (extract(epoch FROM changed) * 1000000)::bigint * 1000 FROM documents ORDER BY kind, name")
	if err != nil {
		return nil, classed(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Document, err error) {
		err = row.Scan(&d.Kind, &d.Name, &d.Body, &d.Changed)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the documents: %w", classed(err))
	}
	return all, nil
}
