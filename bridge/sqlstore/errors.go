package sqlstore

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"codemode-bridge/bridge/ledger"
)

var (
	damaged     = ledger.Damaged
	unavailable = ledger.Unavailable
	reason      = ledger.Reason
	errClosed   = ledger.ErrClosed
	errReadOnly = ledger.ErrReadOnly
)

// code returns SQLite's primary result code for err; 0 if it has none.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// broken reports whether err is SQLite's way of saying that the file is not what it
// should be: corrupt, not a database, or without our tables.
func broken(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR:
		return true
	}
	return false
}

// classed makes err wrap ErrDamaged or ErrUnavailable.
func classed(err error) error {
	switch {
	case err == nil || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnavailable):
		return err
	case broken(err):
		return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}
