//go:build unix

package sqlstore

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/ledger"
)

// Damage that the check in the background finds is not forgotten: not when the
// file is opened anew at that moment, not after another error. Another file in
// its place ends it.
func TestDeepDamageLasts(t *testing.T) {
	var db *DB
	during := func() {} // while the file is opened
	o := place(t, 10)
	o.networkFS = func(string) string {
		during()
		return ""
	}
	db = open(t, o)
	put(t, db, 1)
	const kept = "INSERT INTO kept SELECT body FROM rows WHERE seq = 3"
	edit(t, o.Path, "CREATE TABLE kept (body TEXT)", kept)
	during = func() {
		edit(t, o.Path, "UPDATE rows SET body = '{}' WHERE seq = 3")
		if found, err := (&watch{db: db, f: verifier{db.file}}).verify(t.Context()); !found || err != nil {
			t.Error(found, err)
		}
		if err := os.Remove(o.verifiedFile()); err != nil {
			t.Error(err)
		}
		edit(t, o.Path, "UPDATE rows SET body = (SELECT body FROM kept) WHERE seq = 3")
	}
	db.failed(unavailable("a test says so"))
	refused := func(when string) {
		t.Helper()
		for _, err := range []error{db.Record(t.Context(), ledger.Record{Event: ledger.Intent}), db.Err()} {
			if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "row 3 was edited") {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	refused("found while the file was opened")
	during = func() {}
	db.failed(unavailable("a test says so"))
	refused("after another error")

	edit(t, o.Path, "VACUUM INTO '"+o.Path+".copy'")
	rename(t, o.Path, o.Path+".damaged")
	os.Remove(o.Path + "-wal")
	os.Remove(o.Path + "-shm")
	rename(t, o.Path+".copy", o.Path)
	put(t, db, 1)
	if err := db.Err(); err != nil {
		t.Errorf("with another file: %v", err)
	}
}

// spoken is what a logger writes, and others read meanwhile.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A check that could not be made is logged, and made later.
func TestCheckIsMadeLater(t *testing.T) {
	o := place(t, 10)
	synctest.Test(t, func(t *testing.T) {
		var said spoken
		o := o
		o.Logger = slog.New(slog.NewTextHandler(&said, nil))
		db := open(t, o)
		edit(t, o.Path, "UPDATE rows SET body = '{}' WHERE seq = 3")
		rename(t, o.CheckpointFile, o.CheckpointFile+".away")
		if err := os.Mkdir(o.CheckpointFile, 0o700); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			(&watch{db: db, f: verifier{db.file}}).run(t.Context()) // as if it had read only the end
			close(done)
		}()
		time.Sleep(dueEvery / 2)
		synctest.Wait()
		if err := db.Err(); err != nil || !strings.Contains(said.String(), "could not be checked") {
			t.Errorf("the store says %v, and logged %q", err, said.String())
		}
		if err := os.Remove(o.CheckpointFile); err != nil {
			t.Fatal(err)
		}
		rename(t, o.CheckpointFile+".away", o.CheckpointFile)
		<-done
		if err := db.Err(); !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("after the check: %v", err)
		}
		closeStore(t, db)
	})
}

// A file that was opened anew is checked anew.
func TestCheckedAfterReopening(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	db := open(t, o)
	load(t, db, checkedTail+500)
	edit(t, o.Path, "UPDATE rows SET body = '{}' WHERE seq = 100")
	db.failed(unavailable("a test says so"))
	put(t, db, 1)
	until(t, func() bool { return db.Err() != nil })
	if err := db.Err(); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "row 100 was edited") {
		t.Error(err)
	}
}
