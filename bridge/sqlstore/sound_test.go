//go:build unix

package sqlstore

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A start has SQLite check a small file's structure unless one did within a day, so that
// it takes no longer for 5,000 rows than for ten million. What is wrong there, where no
// row is, is found within a day, also if no process lives for long.
func TestTheStructureIsCheckedOnceADay(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	o.setDefaults()
	synctest.Test(t, func(t *testing.T) {
		db := open(t, o)
		fillFast(t, db, 500)
		settled(t, db)
		closeStore(t, db)
		db = open(t, o)
		if v := note(t, db); v.Sound.IsZero() {
			t.Fatalf("checked at a start, and noted %+v", v)
		}
		closeStore(t, db)
		checked := time.Now()
		spoilIndex(t, o.Path, "rows_tool")

		time.Sleep(23 * time.Hour)
		db = open(t, o)
		hasDamage(t, db, "within a day", "")
		if v := note(t, db); v.Sound.After(checked) {
			t.Errorf("it was checked again after %v", v.Sound.Sub(checked))
		}
		closeStore(t, db)
		time.Sleep(time.Hour)
		for range 2 {
			db = open(t, o)
			hasDamage(t, db, "after a day", "btreeInitPage")
			closeStore(t, db)
		}
	})
}

// spoilIndex overwrites the first page of an index.
func spoilIndex(t *testing.T, path, index string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path))
	must(t, err)
	var page, size int64
	must(t, db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = ?", index).Scan(&page))
	must(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	must(t, err)
	must(t, db.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 64), (page-1)*size)
	must(t, err)
	must(t, f.Close())
}
