package memstore_test

import (
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/storetest"
)

func TestRequests(t *testing.T) {
	storetest.Requests(t, func(*testing.T) (approval.Store, func(*testing.T) approval.Store) {
		store := new(approval.Memory)
		return store, func(*testing.T) approval.Store { return store }
	})
}
