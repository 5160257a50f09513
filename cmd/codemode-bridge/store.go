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
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/auditcmd"
	"codemode-bridge/cmd/codemode-bridge/enrollcmd"
	"codemode-bridge/cmd/codemode-bridge/laptopscmd"
	"codemode-bridge/cmd/codemode-bridge/pushcmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"

	"github.com/spf13/cobra"
)

// auditLogOf gives the commands of package auditcmd access to the audit log.
func auditLogOf(con *console) *auditcmd.Log {
	return &auditcmd.Log{
		Console: &con.Console, Version: version,
		Place: func() (config.Audit, error) { return storePlace(con) }, Named: func() bool { return con.logFile != "" },
		Open:    quietly,
		Missing: storecmd.Missing, Others: storecmd.WithOthers,
		Repair: func(ctx context.Context, place config.Audit) (sqlstore.Repaired, error) {
			return storecmd.Repair(ctx, place)
		},
		Load: con.load, Parse: con.parseFile, Known: meaningOf,
		At: func(file string) (*config.Config, error) {
			other := *con
			other.configPath = file
			return other.load()
		},
	}
}

// logFlag adds the flag --log to a command and its subcommands.
func logFlag(con *console, c *cobra.Command) *cobra.Command {
	c.PersistentFlags().StringVar(&con.logFile, "log", "", "the audit log's `file` (default: audit.path of the configuration)")
	return c
}

// storePlace says where the audit log is: where --log or the configuration says or, if
// there is no configuration, in its default place.
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
		// Nothing was set up, or the configuration is gone: the log can still be
		// read.
		cfg, err = config.Parse(path, []byte("{}"), con.Env)
	}
	if err != nil {
		fmt.Fprintln(con.Err, "hint: --log FILE names an audit log without the configuration")
		return config.Audit{}, err
	}
	// An edit that waits for an approver does not move the log yet.
	if change, err := judge(con, cfg, nil); err == nil && change != nil && change.Old != nil {
		cfg = change.Old
	}
	if cfg, err = con.withSecrets(context.Background(), cfg, storecmd.Pointers...); err != nil {
		return config.Audit{}, err
	}
	return cfg.Audit, mustHavePath(cfg.Audit)
}

// storesOf is the commands about stores.
func storesOf(con *console) *storecmd.Group {
	secrets := func(cfg *config.Config) (*config.Config, error) {
		return con.withSecrets(context.Background(), cfg, storecmd.Pointers...)
	}
	return &storecmd.Group{Console: &con.Console, Version: version, Load: con.load, ConfigFile: con.file, WithSecrets: secrets, FileKey: fileKey,
		InForce: func() (*config.Config, error) { return con.loadWith(storecmd.Pointers...)(context.Background()) },
		Laptops: func(ctx context.Context, from, to config.Audit) (int, error) {
			return laptopscmd.Carry(ctx, from, to, storecmd.SQL)
		}}
}

// laptopsOf and enrollOf are the commands of a centre, and of its laptops.
func laptopsOf(con *console) *laptopscmd.Centre {
	return &laptopscmd.Centre{Console: &con.Console, Version: version, Load: con.loadWith(append(storecmd.Pointers, laptopscmd.Pointer)...), Open: quietly, SQL: storecmd.SQL}
}

func enrollOf(con *console) *enrollcmd.Laptop {
	return &enrollcmd.Laptop{Console: &con.Console, Version: version, Load: con.loadWith(storecmd.Pointers...), Open: quietly,
		Edit: func(edit func([]byte, *config.Config) ([]byte, error)) error { return editConfig(con, edit) }}
}

// quietly opens the audit log for a command.
func quietly(ctx context.Context, place config.Audit, readOnly bool) (ledger.Book, error) {
	return openStore(ctx, place, readOnly, nil)
}

// loadWith reads the configuration that bridges have in force, with the secrets below pointers.
func (con *console) loadWith(pointers ...string) func(context.Context) (*config.Config, error) {
	return func(ctx context.Context) (*config.Config, error) {
		cfg, err := loadInForce(ctx, con)
		if err != nil {
			return nil, err
		}
		return con.withSecrets(ctx, cfg, pointers...)
	}
}

func mustHavePath(place config.Audit) error {
	if place.Path == "" {
		return &configError{errors.New("there is no state folder for the audit log"), "set HOME, or XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME; or audit.path"}
	}
	return nil
}

// The names of keys that are kept in the store, where every bridge with the same store
// finds them.
const (
	identities = "server identities" // makes the identities of servers
	stateKey   = "request state"     // seals the state that stateless clients carry
)

// openStore opens the audit log. With a nil log, nothing is logged about it.
func openStore(ctx context.Context, place config.Audit, readOnly bool, log *slog.Logger) (ledger.Book, error) {
	if err := mustHavePath(place); err != nil {
		return nil, err
	}
	if place.Checkpoint != "" && !readOnly {
		if err := mayAppend(place.Checkpoint); err != nil {
			return nil, &configError{fmt.Errorf("opening the file of checkpoints: %w", err), "audit.checkpoint of the configuration names another file"}
		}
	}
	db, err := storecmd.Open(ctx, place, readOnly, log)
	if err != nil {
		hint := "audit.path of the configuration, or --log, names another file"
		if storecmd.InDatabase(place) {
			hint = "codemode-bridge doctor says more; store and storeKey of the configuration name the database and its key"
		}
		if _, newer := errors.AsType[*ledger.NewerError](err); newer {
			return nil, &configError{err, "start that release again, or go back to what was kept before it: docs/install.md, Going back"}
		}
		if storecmd.Full(err) {
			hint = "the disk is full: make room, or name a file elsewhere with audit.path"
		}
		return nil, &configError{fmt.Errorf("opening the audit log: %w", err), hint}
	}
	return enrollcmd.Keeping(pushcmd.Keeping(db, place, storecmd.OpenPushed), place), nil
}

// mayAppend makes the folder of a file and returns an error if the file cannot be
// appended to, so that a problem with checkpoints shows at the start.
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

// An auditLog is where a bridge's records go, with the keys that the store keeps. A
// key is nil if there is no store.
type auditLog struct {
	*recorder.Recorder
	fingerprints []byte         // makes the fingerprints of hidden values
	states       []byte         // stateKey
	servers      []byte         // identities
	handles      handles.Shared // nil unless bridges of other machines may share the store
}

var errNoCalls = errors.New("this command calls no tool")

// openNothing is openLog for commands that call no tool: its recorder refuses every
// record, and so every call is refused too.
func openNothing(context.Context, config.Audit, *slog.Logger) (*auditLog, error) {
	return &auditLog{Recorder: recorder.New(recorder.Options{Refuse: errNoCalls})}, nil
}

// openLog opens the audit log for a bridge. With audit.enabled false, no record is
// kept.
func (con *console) openLog(ctx context.Context, place config.Audit, log *slog.Logger) (*auditLog, error) {
	if !place.Enabled {
		log.Warn("the audit log is off (audit.enabled): no record is kept")
		return &auditLog{Recorder: recorder.New(recorder.Options{Log: log})}, nil
	}
	db, err := openStore(ctx, place, false, log)
	if err != nil {
		return nil, err
	}
	if errors.Is(db.Err(), ledger.ErrDamaged) { // the store has logged the error itself
		fmt.Fprintln(con.Err, auditcmd.RepairHint)
	}
	key := func(purpose, without string) []byte {
		key, err := db.Key(purpose)
		if err != nil {
			log.Warn(without, "err", err)
		}
		return key
	}
	shared, _ := enrollcmd.Kept(db).(handles.Shared) // a database
	return &auditLog{
		handles:      shared,
		Recorder:     recorder.New(recorder.Options{Store: db, Log: log}),
		fingerprints: key(auditcmd.Fingerprints, "records will show no fingerprints of hidden values"),
		states:       key(stateKey, "what clients carry between requests is good in this process only"),
		servers:      key(identities, "paused runs of this process do not go on after it: servers cannot be told apart"),
	}, nil
}
