package memstore_test

import (
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, false, func(t *testing.T) func(func() time.Time) ledger.Store {
		return func(clock func() time.Time) ledger.Store { return memstore.New(clock) }
	})
}
