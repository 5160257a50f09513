// Package laptopscmd has the commands of a centre, "laptops", and makes the handler with
// which serve is one.
package laptopscmd

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/centre"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/questions"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// seals is the name of the key of the centre's store with which laptops' rows are sealed.
const seals = "laptops"

// File is where the laptops of a store in files are kept.
func File(place config.Audit) string { return filepath.Join(filepath.Dir(place.Path), "laptops.db") }

// A Database opens the database that keeps the records, for tables beside them.
type Database func(place config.Audit) (*sql.DB, error)

// open opens the laptops that are kept beside the records.
func open(ctx context.Context, place config.Audit, database Database) (*centre.Store, error) {
	if !place.Store.IsZero() {
		db, err := database(place)
		if err != nil {
			return nil, err
		}
		return opened(ctx, db, centre.PostgreSQL)
	}
	made, err := os.OpenFile(File(place), os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read it
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store of laptops: %w", err)
	}
	slashed := filepath.ToSlash(File(place))
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(2)", "trusted_schema(0)", "cell_size_check(1)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: slashed, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("opening the store of laptops: %w", err)
	}
	db.SetMaxOpenConns(4)
	return opened(ctx, db, centre.SQLite)
}

func opened(ctx context.Context, db *sql.DB, is centre.Dialect) (*centre.Store, error) {
	s, err := centre.OpenStore(ctx, db, is)
	if err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

// Carry copies the laptops of one place to another, which has none, and returns how many
// there are.
func Carry(ctx context.Context, from, to config.Audit, database Database) (n int, err error) {
	if _, gone := os.Stat(File(from)); from.Store.IsZero() && errors.Is(gone, fs.ErrNotExist) {
		return 0, nil
	}
	if from.Store.IsZero() && to.Store.IsZero() && File(from) == File(to) {
		return 0, nil // they are there
	}
	source, err := open(ctx, from, database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if all, err := source.Laptops(ctx); err != nil || len(all) == 0 {
		return 0, err
	}
	into, err := open(ctx, to, database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	return into.Receive(ctx, source)
}

// Serving is what a centre needs of the bridge that is one.
type Serving struct {
	Config *config.Config
	Book   ledger.Store    // the bridge's own records
	Record ledger.Recorder // into it
	SQL    Database
	// Requests is where approvers here find what is asked.
	Requests approval.Store
	Shows    func(approval.StoredRequest) // shows one in every way in which they see it
	Logger   *slog.Logger
}

// Around returns what serves laptops, and everything else with another handler, until end.
// Without a centre in the configuration it is the other handler alone.
func Around(ctx context.Context, s Serving) (around func(http.Handler) http.Handler, end func() error, err error) {
	if s.Config.Centre.SigningKey.IsZero() {
		return func(other http.Handler) http.Handler { return other }, func() error { return nil }, nil
	}
	key, err := signingKey(s.Config)
	if err != nil {
		return nil, nil, err
	}
	book, ok := s.Book.(ledger.Book)
	if !ok {
		return nil, nil, &cli.SetupError{Err: errors.New("a centre needs an audit log"), Do: "remove audit.enabled from the configuration"}
	}
	seal, err := book.Key(seals)
	if err != nil {
		return nil, nil, fmt.Errorf("serving laptops: %w", err)
	}
	store, err := open(ctx, s.Config.Audit, s.SQL)
	if err != nil {
		return nil, nil, err
	}
	log := s.Logger.With("part", "laptops")
	desk := questions.NewDesk(questions.DeskOptions{Store: s.Requests, Shows: s.Shows, Done: ctx.Done(), Logger: log})
	laptops := centre.New(centre.Options{Store: store, Key: key, Seal: seal, Policy: s.Config.Centre.Policy, Questions: desk, Record: s.Record, Logger: log})
	return func(other http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/laptops/") {
				laptops.ServeHTTP(w, r)
				return
			}
			other.ServeHTTP(w, r)
		})
	}, store.Close, nil
}

func signingKey(cfg *config.Config) (centreKey, error) {
	if cfg.Centre.SigningKey.IsZero() {
		return nil, &cli.SetupError{Err: errors.New("this configuration is no centre's"), Do: `"centre": {"signingKey": "${keyring:CENTRE_KEY}"} makes it one; docs/laptops.md says more`}
	}
	key, err := enrolment.ParseKey(cfg.Centre.SigningKey.Reveal())
	if err != nil {
		return nil, &cli.SetupError{Err: fmt.Errorf("centre.signingKey: %w", err), Do: "it is read with the secret that the configuration names"}
	}
	return key, nil
}
