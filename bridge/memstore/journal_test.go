package memstore_test

import (
	"testing"

	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/storetest"
)

func TestJournals(t *testing.T) {
	storetest.Journals(t, func(*testing.T) (storetest.Journaled, func(*testing.T) storetest.Journaled) {
		store := memstore.New(nil)
		return store, func(*testing.T) storetest.Journaled { return store }
	})
}
