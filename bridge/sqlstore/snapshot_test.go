package sqlstore

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Two files in which a writer always adds to one first and then to the other are copied as
// of one instant: the first is ahead by one at most, however fast they grow.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var files []*sql.DB
	for _, name := range []string{"a.db", "b.db"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		pool, err := connect(at(name), "rw", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := pool.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE t (x)"); err != nil {
			t.Fatal(err)
		}
		files = append(files, pool)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	wrote := make(chan struct{})
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, f := range files {
				if _, err := f.Exec("INSERT INTO t VALUES (zeroblob(300))"); err != nil {
					t.Errorf("writing while it is copied: %v", err)
				}
			}
			if n == 20 {
				close(wrote)
			}
		}
	})
	<-wrote
	count := func(path string) (n int) {
		pool, err := connect(path, "rw", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := 0
	for _, suffix := range []string{"1", "2", "3", "4", "5"} {
		if err := Snapshot(t.Context(), Copy{at("a.db"), at("a" + suffix)}, Copy{at("b.db"), at("b" + suffix)}); err != nil {
			t.Fatal(err)
		}
		a, b := count(at("a"+suffix)), count(at("b"+suffix))
		if a-b < 0 || a-b > 1 || a < last {
			t.Errorf("copy %s has %d and %d rows, the one before %d", suffix, a, b, last)
		}
		last = a
	}
	stop()
	writing.Wait()
	if err := Snapshot(t.Context(), Copy{at("a.db"), at("a1")}); err == nil || !strings.Contains(err.Error(), "a1") {
		t.Errorf("a copy over another: %v", err)
	}
	if err := Snapshot(t.Context(), Copy{at("none.db"), at("none")}); err == nil {
		t.Error("a copy of nothing")
	}
}
