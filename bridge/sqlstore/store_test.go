package sqlstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, true, func(t *testing.T) func(func() time.Time) ledger.Store {
		path := filepath.Join(t.TempDir(), "audit.db")
		return func(clock func() time.Time) ledger.Store { return open(t, Options{Path: path, Clock: clock}) }
	})
}

// open opens a store that the test closes.
func open(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
