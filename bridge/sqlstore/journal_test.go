package sqlstore

import (
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/storetest"
)

func TestJournals(t *testing.T) {
	storetest.Journals(t, func(t *testing.T) (storetest.Journaled, func(*testing.T) storetest.Journaled) {
		o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
		return open(t, o), func(t *testing.T) storetest.Journaled { return open(t, o) }
	})
}
