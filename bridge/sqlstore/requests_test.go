package sqlstore

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/storetest"
)

func openRequests(t *testing.T, path string) *RequestStore {
	t.Helper()
	r, err := OpenRequests(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestRequests(t *testing.T) {
	storetest.Requests(t, func(t *testing.T) (approval.Store, func(*testing.T) approval.Store) {
		path := filepath.Join(t.TempDir(), "new folder", "requests.db")
		return openRequests(t, path), func(t *testing.T) approval.Store { return openRequests(t, path) }
	})
}

// What is kept is there when the file is opened again, and nobody else can read it.
func TestRequestsLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.db")
	first, err := OpenRequests(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q1"}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || permissions(info)&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	all, err := openRequests(t, path).Requests(t.Context(), approval.Filter{})
	if err != nil || len(all) != 1 || all[0].ID != "q1" {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestRequestsThatCannotBeOpened(t *testing.T) {
	folder := t.TempDir()
	damaged := filepath.Join(folder, "damaged.db")
	if err := os.WriteFile(damaged, []byte("this is no database, and long enough not to be taken for a new one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRequests(t.Context(), damaged); err == nil {
		t.Error("a damaged file was opened")
	}
	newer := filepath.Join(folder, "newer.db")
	if r, err := OpenRequests(t.Context(), newer); err != nil {
		t.Fatal(err)
	} else if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	if _, err := OpenRequests(t.Context(), newer); err == nil {
		t.Error("a file of a newer release was opened")
	}
}

// A connection that went bad is not looked through again.
func TestLookAgain(t *testing.T) {
	r := openRequests(t, filepath.Join(t.TempDir(), "requests.db"))
	c, err := r.pool.Conn(t.Context())
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.look(t.Context(), &c); err == nil || c != nil {
		t.Errorf("a bad connection: %v, and it is %v", err, c)
	}
	if _, err := r.look(t.Context(), &c); err != nil || c == nil {
		t.Fatalf("after a bad connection: %v, and it is %v", err, c)
	}
	open := r.pool.Stats().OpenConnections
	drop(c)
	if now := r.pool.Stats().OpenConnections; now != open-1 {
		t.Errorf("%d connections are open after one of %d was dropped", now, open)
	}
}
