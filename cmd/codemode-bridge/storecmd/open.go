// Package storecmd opens the store that a configuration names, a file or a database,
// and has the command that copies one into another.
package storecmd

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/sqlstore"
)

// Requests are the requests to people, their grants, and configurations that wait for an
// approver.
type Requests interface {
	approval.Store
	Close() error
}

// Pointers are where a configuration has the store's address and key, which may name
// secrets.
var Pointers = []string{"/store", "/storeKey"}

// InDatabase reports whether the store is a database, and not a file.
func InDatabase(place config.Audit) bool { return !place.Store.IsZero() }

// Named names the database for people; it is empty if the store is a file.
func Named(place config.Audit) string {
	if !InDatabase(place) {
		return ""
	}
	return pgstore.Where(place.Store.Reveal())
}

// File returns the options of a store in files.
func File(place config.Audit) sqlstore.Options {
	return sqlstore.Options{Path: place.Path, AllDurable: place.Durability == config.DurabilityAll, CheckpointFile: place.Checkpoint}
}

// Database returns the options of a store in a database.
func Database(place config.Audit) pgstore.Options {
	o := pgstore.Options{URL: place.Store.Reveal(), Secret: []byte(place.StoreKey.Reveal()), CheckpointFile: place.Checkpoint}
	if place.StoreKey.IsZero() && place.Path != "" {
		o.SecretFile = filepath.Join(filepath.Dir(place.Path), "store.key")
	}
	return o
}

// SQL opens the database for tables beside the store's own; see [pgstore.SQL].
func SQL(place config.Audit) (*sql.DB, error) { return pgstore.SQL(Database(place)) }

// Open opens the records and journals. With a nil log, nothing is logged about it. If
// there is no store in a database that is only read, the error is ledger.ErrNoStore.
func Open(ctx context.Context, place config.Audit, readOnly bool, log *slog.Logger) (ledger.Book, error) {
	if InDatabase(place) {
		o := Database(place)
		o.ReadOnly, o.Logger = readOnly, log
		db, err := pgstore.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	o := File(place)
	o.ReadOnly, o.Logger = readOnly, log
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Full reports whether an error says that there is no room for a file.
func Full(err error) bool { return sqlstore.Full(err) || errors.Is(err, syscall.ENOSPC) }

// Missing reports whether there is no file of records. What a database has is not asked
// here.
func Missing(place config.Audit) bool { return !InDatabase(place) && gone(place.Path) }

// NeverAsked reports whether there is no file of requests.
func NeverAsked(place config.Audit) bool { return !InDatabase(place) && gone(place.Requests()) }

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// OpenRequests opens the requests, and makes their place if there is none.
func OpenRequests(ctx context.Context, place config.Audit) (Requests, error) {
	if InDatabase(place) {
		r, err := pgstore.OpenRequests(ctx, Database(place))
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	r, err := sqlstore.OpenRequests(ctx, place.Requests())
	if err != nil {
		return nil, err
	}
	return r, nil
}

// OpenPushed opens what is known of the pushing of a store's records. Closed releases it.
func OpenPushed(ctx context.Context, place config.Audit) (from documents.Store, closed func(), err error) {
	const kind = "push"
	if !InDatabase(place) {
		return documents.Folder(place.Path + "-" + kind), func() {}, nil
	}
	all, err := pgstore.OpenDocuments(ctx, Database(place))
	if err != nil {
		return nil, nil, err
	}
	return all.Documents(kind), func() { _ = all.Close() }, nil
}

// A State is what opening the records shows; see doctor.LogState.
type State struct {
	Last    int64
	Missing bool
	Opened  bool
	Damaged bool
	Newer   bool
	Whole   time.Time
	Bridges []string
}

// Look opens the records for reading, and says what it found.
func Look(ctx context.Context, place config.Audit) (s State, err error) {
	db, err := Open(ctx, place, true, nil)
	if errors.Is(err, ledger.ErrNoStore) {
		return State{Missing: true}, nil
	}
	if err != nil {
		_, s.Newer = errors.AsType[*ledger.NewerError](err)
		return s, err
	}
	defer db.Close()
	s.Opened, s.Whole = true, db.WholeAt()
	s.Last, _, err = db.Head(ctx)
	if wrong := db.Err(); errors.Is(wrong, ledger.ErrDamaged) {
		s.Damaged, err = true, wrong
	}
	if err == nil && InDatabase(place) {
		err = pgstore.Writable(ctx, Database(place))
	}
	if err != nil {
		return s, err
	}
	all, err := Replicas(ctx, place)
	for _, one := range all {
		s.Bridges = append(s.Bridges, one.Line())
	}
	return s, err
}

// Replicas returns the bridges that share a database; none if the store is a file.
func Replicas(ctx context.Context, place config.Audit) ([]replica.Replica, error) {
	m, err := Others(place)
	if err != nil {
		return nil, err
	}
	all, err := m.List(ctx)
	return all, errors.Join(err, m.Leave())
}

// Repair sets a damaged log in a file aside and begins a new one.
func Repair(ctx context.Context, place config.Audit) (sqlstore.Repaired, error) {
	if InDatabase(place) {
		return sqlstore.Repaired{}, errors.New("a store in PostgreSQL is not repaired: restore a backup of the database; or set the schema aside with ALTER SCHEMA codemode_bridge RENAME TO damaged, after which a new store is made at the next start")
	}
	return sqlstore.Repair(ctx, File(place))
}
