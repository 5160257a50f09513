package memstore_test

import (
	"testing"
	"time"

	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/storetest"
)

func TestReplicas(t *testing.T) {
	storetest.Replicas(t, func(*testing.T) replica.Table { return &memstore.Replicas{Clock: time.Now} })
}
