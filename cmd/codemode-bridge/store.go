package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"
)

// storePlace is where the audit log is, and how it is kept: by --log, by the
// configuration, or, where there is none, where it is by default.
func storePlace(con *console) (config.Audit, error) {
	if con.logFile != "" {
		return config.Audit{Path: con.logFile}, nil
	}
	path, err := con.file()
	if err != nil {
		return config.Audit{}, err
	}
	cfg, err := con.load()
	if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) && con.configPath == "" {
		// Nothing was set up, or the configuration is gone; the log can be
		// read all the same.
		cfg, err = config.Parse(path, []byte("{}"), con.env)
	}
	if err != nil {
		fmt.Fprintln(con.err, "hint: --log FILE names an audit log without the configuration")
		return config.Audit{}, err
	}
	// While an edit waits to be confirmed, the log is where it was.
	if h, err := judge(con, cfg, nil); err == nil && h != nil && h.old != nil {
		cfg = h.old
	}
	return cfg.Audit, mustHavePath(cfg.Audit)
}

func mustHavePath(place config.Audit) error {
	if place.Path == "" {
		return &configError{errors.New("there is no state folder for the audit log"), "set XDG_STATE_HOME, HOME, or audit.path"}
	}
	return nil
}

// identities is the purpose of the key under which servers are told apart.
const identities = "server identities"

// fingerprints is the purpose of the key that hidden values get their
// fingerprints with.
const fingerprints = "fingerprints"

func storeOptions(place config.Audit) sqlstore.Options {
	return sqlstore.Options{Path: place.Path, AllDurable: place.Durability == config.DurabilityAll, CheckpointFile: place.Checkpoint}
}

const repairHint = "hint: calls are refused until codemode-bridge audit repair has set the damaged log aside"

// openStore opens the audit log. Nil is a log of which nobody is told.
func openStore(ctx context.Context, place config.Audit, readOnly bool, log *slog.Logger) (*sqlstore.DB, error) {
	if err := mustHavePath(place); err != nil {
		return nil, err
	}
	if place.Checkpoint != "" && !readOnly {
		if err := mayAppend(place.Checkpoint); err != nil {
			return nil, &configError{fmt.Errorf("opening the file of checkpoints: %w", err), "audit.checkpoint of the configuration names another file"}
		}
	}
	o := storeOptions(place)
	o.ReadOnly, o.Logger = readOnly, log
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return nil, &configError{fmt.Errorf("opening the audit log: %w", err), "audit.path of the configuration, or --log, names another file"}
	}
	return db, nil
}

// mayAppend reports why a file cannot be added to, and makes its folder: who
// relies on checkpoints hears of it at the start.
func mayAppend(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// openRecorder makes the way of a bridge's records. With audit.enabled false
// there is no log at its end.
func (con *console) openRecorder(ctx context.Context, place config.Audit, log *slog.Logger) (*recorder, error) {
	if !place.Enabled {
		log.Warn("the audit log is off (audit.enabled): no record is kept")
		return &recorder{log: log}, nil
	}
	db, err := openStore(ctx, place, false, log)
	if err != nil {
		return nil, err
	}
	if errors.Is(db.Err(), ledger.ErrDamaged) { // which the store has logged
		fmt.Fprintln(con.err, repairHint)
	}
	prints, err := db.Key(fingerprints)
	if err != nil {
		log.Warn("records will show no fingerprints of hidden values", "err", err)
	}
	states, err := db.Key(stateKey)
	if err != nil {
		log.Warn("what clients carry between requests is good in this process only", "err", err)
	}
	servers, err := db.Key(identities)
	if err != nil {
		log.Warn("paused runs of this process do not go on after it: servers cannot be told apart", "err", err)
	}
	return &recorder{store: db, prints: prints, states: states, servers: servers, log: log}, nil
}

// keep removes records that are too old or too many, now and every hour until
// ctx ends. An age or a number of 0 is no limit.
func (r *recorder) keep(ctx context.Context, age time.Duration, rows int) {
	if r.store == nil || age <= 0 && rows <= 0 {
		return
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		var before time.Time
		var err error
		if rows > 0 {
			before, err = timeOfNewest(ctx, r.store, int64(rows))
		}
		if oldest := time.Now().Add(-age); age > 0 && oldest.After(before) {
			before = oldest
		}
		var n int64
		if !before.IsZero() {
			var lost error
			n, lost = r.store.Prune(ctx, before)
			err = errors.Join(err, lost)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.Error("removing old records (audit.keep, audit.keepRows)", "err", err)
		case n > 0:
			r.log.Info("old records were removed (audit.keep, audit.keepRows)", "rows", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close closes the log, if there is one.
func (r *recorder) Close() error {
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

// readValue reads one value, without the line break at its end.
func readValue(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return "", fmt.Errorf("reading a value: %w", err)
	}
	text := strings.TrimSuffix(string(b), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// journal is where runs are kept that can outlive this process; nil where no
// records are.
func (r *recorder) journal() ledger.Journal {
	if j, ok := r.store.(ledger.Journal); ok && !r.refuse {
		return j
	}
	return nil
}

// stateKey is the purpose of the key that seals what stateless clients carry:
// any bridge with the same store can read it.
const stateKey = "request state"

// timeOfNewest is the time of the first of the newest n rows, before which all may
// go; zero where there are no more than n.
func timeOfNewest(ctx context.Context, store ledger.Store, n int64) (time.Time, error) {
	last, _, err := store.Head(ctx)
	if err != nil || last <= n {
		return time.Time{}, err
	}
	for row, err := range store.Rows(ctx, ledger.Query{After: last - n, Limit: 1}) {
		return row.Record.Time, err
	}
	return time.Time{}, nil
}
