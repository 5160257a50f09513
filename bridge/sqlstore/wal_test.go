package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/ledger"
)

// walOf makes a log whose rows are in its -wal alone, and returns a copy of it
// as a kill would leave it.
func walOf(t *testing.T) (o Options, wal []byte) {
	t.Helper()
	from := place(t, 0)
	if err := os.WriteFile(from.CheckpointFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := open(t, from)
	put(t, db, 4)
	o = from.copyTo(t, t.TempDir())
	o.CheckpointFile = ""
	wal, err := os.ReadFile(from.Path + "-wal")
	if err != nil || len(wal) < walHeader+2*frameHeader {
		t.Fatalf("the -wal has %d bytes, %v", len(wal), err)
	}
	return o, wal
}

func writeWAL(t *testing.T, o Options, wal []byte) {
	t.Helper()
	if err := os.WriteFile(o.Path+"-wal", wal, 0o600); err != nil {
		t.Fatal(err)
	}
}

// SQLite takes a -wal that it cannot read for none. A log that has all its rows
// there is not called empty for that, and the -wal is kept.
func TestSpoiledWAL(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(wal []byte)
	}{
		{"its header", func(wal []byte) { wal[20] ^= 1 }},
		{"its magic number", func(wal []byte) { wal[3] ^= 8 }},
		{"its first page", func(wal []byte) { wal[walHeader+frameHeader+100] ^= 1 }},
		{"the salt of its first frame", func(wal []byte) { wal[walHeader+8] ^= 1 }},
		{"all of it", func(wal []byte) { clear(wal) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, wal := walOf(t)
			row.spoil(wal)
			for _, readOnly := range []bool{true, false} {
				writeWAL(t, o, wal)
				o.ReadOnly = readOnly
				db := open(t, o)
				if err := db.Err(); !errors.Is(err, ledger.ErrDamaged) {
					t.Errorf("opened: %v", err)
				}
				if report, err := db.Verify(t.Context(), nil); err != nil || report.Whole || report.Kind != ledger.Unreadable {
					t.Errorf("verify: %+v, %v", report, err)
				}
				closeStore(t, db)
				if after, err := os.ReadFile(o.Path + "-wal"); err != nil || string(after) != string(wal) {
					t.Errorf("the -wal was not kept: %v", err)
				}
			}
			if done, err := Repair(t.Context(), o); err != nil || done.Old == "" {
				t.Errorf("repair: %+v, %v", done, err)
			}
			put(t, open(t, o), 1)
		})
	}
}

// What a kill leaves is no damage: part of a -wal, or one that was begun again
// over frames that are in the database.
func TestUnfinishedWAL(t *testing.T) {
	o, wal := walOf(t)
	for _, n := range []int{0, 10, walHeader, walHeader + 10, walHeader + frameHeader + 100, len(wal) - 10, len(wal)} {
		c := Options{Path: o.Path + ".copy", Key: o.Key}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(c.Path + suffix)
		}
		data, err := os.ReadFile(o.Path)
		if err == nil {
			err = os.WriteFile(c.Path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		writeWAL(t, c, wal[:n])
		db := open(t, c)
		put(t, db, 1)
		closeStore(t, db)
	}

	db := open(t, o)
	put(t, db, 4)
	edit(t, o.Path, "PRAGMA wal_checkpoint(RESTART)")
	before, err := os.ReadFile(o.Path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, 1)
	after, err := os.ReadFile(o.Path + "-wal")
	if err != nil || string(after[:walHeader]) == string(before[:walHeader]) {
		t.Fatalf("the -wal was not begun again: %v", err)
	}
	for _, n := range []int{walHeader, len(after)} { // a kill after the header was written, and none
		again := append(append([]byte(nil), after[:n]...), before[n:]...)
		c := filepath.Join(t.TempDir(), "again-wal")
		if err := os.WriteFile(c, again, 0o600); err != nil {
			t.Fatal(err)
		}
		if bad, err := spoiled(c); bad || err != nil {
			t.Errorf("begun again, with %d new bytes, the -wal counts as spoiled: %v", n, err)
		}
	}
}

// After Close the rows are in the file itself, also when another process that
// only reads still has it open and the -wal has to stay.
func TestCloseFolds(t *testing.T) {
	o := place(t, 0)
	db := open(t, o)
	put(t, db, 6)
	reading := o
	reading.ReadOnly = true
	reader := open(t, reading)
	if got := all(t, reader); len(got) != 6 {
		t.Fatalf("%d rows", len(got))
	}
	closeStore(t, db)
	c := o.copyTo(t, t.TempDir()) // without the -wal
	if got := all(t, open(t, c)); len(got) != 6 {
		t.Errorf("the file has %d rows", len(got))
	}
	closeStore(t, reader)
	closeStore(t, open(t, o))
	if _, err := os.Stat(o.Path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("who closed last left the -wal: %v", err)
	}
}
