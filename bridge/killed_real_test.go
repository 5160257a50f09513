//go:build real

package bridge

import (
	"testing"

	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/pgtest"
	"codemode-bridge/bridge/storetest"
)

// TestKilledAtEveryCommit with a store in PostgreSQL.
func TestRealKilledAtEveryCommit(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	killedAtEveryCommit(t, func(t *testing.T) storetest.Journaled {
		db, err := pgstore.Open(t.Context(), pgstore.Options{URL: server.Schema(), Secret: []byte("the key of the store of killed runs")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	})
}
