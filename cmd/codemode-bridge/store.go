package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/auditcmd"

	"github.com/spf13/cobra"
)

// auditLogOf is the audit log to the commands that read and keep it.
func auditLogOf(con *console) *auditcmd.Log {
	return &auditcmd.Log{
		Console: &con.Console, Version: version,
		Place: func() (config.Audit, error) { return storePlace(con) },
		Open: func(ctx context.Context, place config.Audit, readOnly bool) (*sqlstore.DB, error) {
			return openStore(ctx, place, readOnly, nil)
		},
		Repair: func(ctx context.Context, place config.Audit) (sqlstore.Repaired, error) {
			return sqlstore.Repair(ctx, storeOptions(place))
		},
		Load: con.load,
	}
}

// logFlag gives a command, and those below it, the flag --log.
func logFlag(con *console, c *cobra.Command) *cobra.Command {
	c.PersistentFlags().StringVar(&con.logFile, "log", "", "the audit log's `file` (default: audit.path of the configuration)")
	return c
}

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
		cfg, err = config.Parse(path, []byte("{}"), con.Env)
	}
	if err != nil {
		fmt.Fprintln(con.Err, "hint: --log FILE names an audit log without the configuration")
		return config.Audit{}, err
	}
	// While an edit waits to be confirmed, the log is where it was.
	if change, err := judge(con, cfg, nil); err == nil && change != nil && change.Old != nil {
		cfg = change.Old
	}
	return cfg.Audit, mustHavePath(cfg.Audit)
}

func mustHavePath(place config.Audit) error {
	if place.Path == "" {
		return &configError{errors.New("there is no state folder for the audit log"), "set XDG_STATE_HOME, HOME, or audit.path"}
	}
	return nil
}

// The purposes of keys: under identities servers are told apart, and stateKey
// seals what stateless clients carry, so that any bridge with the same store can
// read it.
const (
	identities = "server identities"
	stateKey   = "request state"
)

func storeOptions(place config.Audit) sqlstore.Options {
	return sqlstore.Options{Path: place.Path, AllDurable: place.Durability == config.DurabilityAll, CheckpointFile: place.Checkpoint}
}

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

// An auditLog is where a bridge's records go, and the keys that are kept beside
// them. A key is nil where there is none.
type auditLog struct {
	*recorder.Recorder
	fingerprints []byte // of hidden values
	states       []byte // seals what stateless clients carry
	servers      []byte // of servers' identities
}

var errNoCalls = errors.New("this command calls no tool")

// openNothing is openLog for commands that call no tool: nothing is recorded, and
// so nothing can be done.
func openNothing(context.Context, config.Audit, *slog.Logger) (*auditLog, error) {
	return &auditLog{Recorder: recorder.New(recorder.Options{Refuse: errNoCalls})}, nil
}

// openLog opens the way of a bridge's records. With audit.enabled false
// there is no log at its end.
func (con *console) openLog(ctx context.Context, place config.Audit, log *slog.Logger) (*auditLog, error) {
	if !place.Enabled {
		log.Warn("the audit log is off (audit.enabled): no record is kept")
		return &auditLog{Recorder: recorder.New(recorder.Options{Log: log})}, nil
	}
	db, err := openStore(ctx, place, false, log)
	if err != nil {
		return nil, err
	}
	if errors.Is(db.Err(), ledger.ErrDamaged) { // which the store has logged
		fmt.Fprintln(con.Err, auditcmd.RepairHint)
	}
	key := func(purpose, without string) []byte {
		key, err := db.Key(purpose)
		if err != nil {
			log.Warn(without, "err", err)
		}
		return key
	}
	return &auditLog{
		Recorder:     recorder.New(recorder.Options{Store: db, Log: log}),
		fingerprints: key(auditcmd.Fingerprints, "records will show no fingerprints of hidden values"),
		states:       key(stateKey, "what clients carry between requests is good in this process only"),
		servers:      key(identities, "paused runs of this process do not go on after it: servers cannot be told apart"),
	}, nil
}
