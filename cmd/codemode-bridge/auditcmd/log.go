// Package auditcmd has the commands that read, check, maintain and follow the audit
// log. Command is the group "audit"; Tail is "tail"; Runs and Show are
// "runs list" and "runs show".
// Package bridge/audit formats what they print; a Log, which the program fills in,
// says where the audit log is and how it is opened.
package auditcmd

import (
	"context"
	"errors"
	"fmt"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// A Log is what the commands need of the program: its console, and access to the
// audit log that the command line or the configuration names.
type Log struct {
	*cli.Console
	Version string // of the program

	Place func() (config.Audit, error)
	Named func() bool // the command line names the log: no configuration is asked
	Open  func(ctx context.Context, place config.Audit, readOnly bool) (ledger.Book, error)
	// Others gives do what says whether a bridge has ended.
	Others func(place config.Audit, do func(gone func(bridge string) bool) error) error
	// Missing reports whether there is no file at the place.
	Missing func(place config.Audit) bool
	Repair  func(ctx context.Context, place config.Audit) (sqlstore.Repaired, error)
	Load    func() (*config.Config, error) // the present configuration
	// At reads the configuration of a file or, if it is empty, the one that holds where the
	// command line names none.
	At func(file string) (*config.Config, error)
	// Parse reads a text as the configuration of a file.
	Parse func(file string, text []byte) (*config.Config, error)
	// Known says what is known of a server's tool.
	Known func(cfg *config.Config, server, tool string) audit.Meaning
}

// Fingerprints names the key with which fingerprints of hidden values are made.
const Fingerprints = "fingerprints"

// RepairHint says what to do about a damaged log.
const RepairHint = "hint: calls are refused until codemode-bridge audit repair has set the damaged log aside"

// errNoLog ends a command that needs an audit log and has found none; the person
// has been told.
var errNoLog = &cli.ExitError{Code: cli.ExitFailed}

// With opens the audit log for reading and calls do with it. If there is none, it
// says so and returns an error that ends the command.
func (l *Log) With(ctx context.Context, do func(context.Context, ledger.Book) error) error {
	return l.with(ctx, true, do)
}

// WithAny is With for commands that succeed, having nothing to do, if there is no
// log.
func (l *Log) WithAny(ctx context.Context, do func(context.Context, ledger.Book) error) error {
	return noLogIsEmpty(l.With(ctx, do))
}

// read is With for commands that treat a missing log as an empty one.
func (l *Log) read(ctx context.Context, do func(context.Context, ledger.Store) error) error {
	err := l.With(ctx, func(ctx context.Context, s ledger.Book) error { return do(ctx, s) })
	if errors.Is(err, errNoLog) {
		return do(ctx, memstore.New(nil))
	}
	return err
}

// write is WithAny for commands that change the log.
func (l *Log) write(ctx context.Context, do func(context.Context, ledger.Book) error) error {
	return noLogIsEmpty(l.with(ctx, false, do))
}

func noLogIsEmpty(err error) error {
	if errors.Is(err, errNoLog) {
		return nil
	}
	return err
}

func (l *Log) with(ctx context.Context, readOnly bool, do func(context.Context, ledger.Book) error) (err error) {
	place, err := l.Place()
	if err != nil {
		return err
	}
	none := l.Missing(place)
	var store ledger.Book
	if !none {
		store, err = l.Open(ctx, place, readOnly)
		none = errors.Is(err, ledger.ErrNoStore)
	}
	if none {
		fmt.Fprintf(l.Err, "there is no audit log at %s\n", place.Where())
		return errNoLog
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if broken := store.Err(); errors.Is(broken, ledger.ErrDamaged) {
		fmt.Fprintf(l.Err, "%s\n%s\n", audit.Shown(broken.Error()), RepairHint)
	}
	return do(ctx, store)
}
