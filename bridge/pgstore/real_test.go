//go:build real

package pgstore

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgtest"
	"codemode-bridge/bridge/storetest"
)

var server *pgtest.Server

func withServer(m *testing.M) int {
	var err error
	if server, err = pgtest.Start("max_connections=200"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	return m.Run()
}

var secret = []byte("a secret of the test, long enough")

// place returns the options of a store in a schema of its own.
func place() Options { return Options{URL: server.Schema(), Secret: secret} }

func begin(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openRequests(t testing.TB, o Options) *RequestStore {
	t.Helper()
	r, err := OpenRequests(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRealStore(t *testing.T) {
	storetest.Run(t, true, func(t *testing.T) func(func() time.Time) ledger.Store {
		o := place()
		return func(clock func() time.Time) ledger.Store { o.Clock = clock; return begin(t, o) }
	})
}

func TestRealJournals(t *testing.T) {
	storetest.Journals(t, func(t *testing.T) (storetest.Journaled, func(*testing.T) storetest.Journaled) {
		o := place()
		return begin(t, o), func(t *testing.T) storetest.Journaled { return begin(t, o) }
	})
}

func TestRealRequests(t *testing.T) {
	storetest.Requests(t, func(t *testing.T) (approval.Store, func(*testing.T) approval.Store) {
		o := place()
		return openRequests(t, o), func(t *testing.T) approval.Store { return openRequests(t, o) }
	})
}

// raw returns a connection of the test's own.
func raw(t testing.TB, o Options) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(conn) })
	return conn
}

func edit(t testing.TB, o Options, statements ...string) {
	t.Helper()
	conn := raw(t, o)
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	hangUp(conn)
}
