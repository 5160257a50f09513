package sqlstore

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/ledger"

	"github.com/google/go-cmp/cmp"
)

// A full disk or a power cut may leave part of a line. The next checkpoint
// still stands on a line of its own, and still counts.
func TestTornCheckpoint(t *testing.T) {
	var said bytes.Buffer
	o := place(t, 4)
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	text, err := os.ReadFile(o.CheckpointFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"codemode-bridge checkp", string(text[:len(text)-1]), "x\nx"} {
		said.Reset()
		f, err := os.OpenFile(o.CheckpointFile, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(torn)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		db := open(t, o)
		put(t, db, 1)
		closeStore(t, db)
		last, err := lastCheckpoint(&o)
		if err != nil || last == nil {
			t.Fatalf("after %q the last checkpoint is %+v, %v", torn, last, err)
		}
		if diff := cmp.Diff(*db.lastSeen, lastSeen{last.Store, last.Seq, last.Hash}, cmp.AllowUnexported(lastSeen{})); diff != "" {
			t.Errorf("after %q the last checkpoint is not of the last row (-want +got):\n%s", torn, diff)
		}
		if report, err := open(t, o).Verify(t.Context(), nil); err != nil || !report.Whole {
			t.Errorf("after %q: %+v, %v", torn, report, err)
		}
	}
	if !strings.Contains(said.String(), "is no checkpoint") {
		t.Errorf("nobody was told: %s", said.String())
	}
	edit(t, o.Path, "DELETE FROM recent", "DELETE FROM rows WHERE seq > 2")
	if err := open(t, o).Err(); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a log that was cut, with torn lines among its checkpoints: %v", err)
	}
}

// What could not be written to the second place is owed, and is not tried with
// every record.
func TestCheckpointIsOwed(t *testing.T) {
	o := place(t, 2)
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		o := o
		o.Logger = slog.New(slog.NewTextHandler(&said, nil))
		db := open(t, o)
		put(t, db, 1)
		rename(t, o.CheckpointFile, o.CheckpointFile+".away")
		if err := os.Mkdir(o.CheckpointFile, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ledger.CheckpointAfter + ledger.CheckpointAgain/2)
		synctest.Wait()
		for range 3 {
			put(t, db, 1)
		}
		if n := strings.Count(said.String(), "no checkpoint was written"); n != 1 {
			t.Errorf("tried %d times: %s", n, said.String())
		}
		if err := os.Remove(o.CheckpointFile); err != nil {
			t.Fatal(err)
		}
		rename(t, o.CheckpointFile+".away", o.CheckpointFile)
		time.Sleep(ledger.CheckpointAgain)
		synctest.Wait()
		if last, err := lastCheckpoint(&o); err != nil || last == nil || last.Seq != 6 {
			t.Errorf("the last checkpoint is %+v, %v", last, err)
		}
		closeStore(t, db)
	})
}
