package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/ledger"
)

// place makes a closed store of n rows, of which some have settled, and
// returns its options.
func place(t *testing.T, n int) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{Path: filepath.Join(dir, "audit.db"), CheckpointFile: filepath.Join(dir, "elsewhere", "checkpoints")}
	if err := os.Mkdir(filepath.Dir(o.CheckpointFile), 0o700); err != nil {
		t.Fatal(err)
	}
	o.setDefaults()
	db := open(t, o)
	put(t, db, n/2)
	settled(t, db)
	put(t, db, n-n/2)
	closeStore(t, db)
	return o
}

func put(t testing.TB, db *DB, n int) {
	t.Helper()
	for i := range n {
		intent, outcome := call(i / 2)
		if i%2 == 1 {
			intent = outcome
		}
		if err := db.Record(t.Context(), intent); err != nil {
			t.Fatal(err)
		}
	}
}

func closeStore(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyTo copies a closed store to another folder.
func (o Options) copyTo(t testing.TB, dir string) Options {
	t.Helper()
	c := o
	c.Path, c.Key = filepath.Join(dir, "audit.db"), filepath.Join(dir, "audit.db.key")
	files := map[string]string{o.Path: c.Path, o.Key: c.Key}
	if o.CheckpointFile != "" {
		c.CheckpointFile = filepath.Join(dir, "checkpoints")
		files[o.CheckpointFile] = c.CheckpointFile
	}
	for from, to := range files {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// edit changes a file behind the store's back, as the sqlite3 tool would.
func edit(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=busy_timeout(60000)") // rows may be moving
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// shift renumbers the rows of a table from a number on.
func shift(table string, from, by int) []string {
	return []string{
		fmt.Sprintf("UPDATE %s SET seq = -(seq + %d) WHERE seq >= %d", table, by, from),
		fmt.Sprintf("UPDATE %s SET seq = -seq WHERE seq < 0", table),
	}
}

// finds verifies a store, in which the first wrong row must be bad, wrong in that way.
func finds(t *testing.T, db *DB, against *ledger.Checkpoint, bad int64, kind ledger.Kind) {
	t.Helper()
	report, err := db.Verify(t.Context(), against)
	must(t, err)
	if diff := cmp.Diff(ledger.Report{Bad: bad, Kind: kind}, report, cmpopts.IgnoreFields(ledger.Report{}, "Sealed", "Rows", "First", "Last", "Hash", "Message")); diff != "" {
		t.Errorf("verified against %v (-want +got):\n%s", against, diff)
	}
}

func TestTampered(t *testing.T) {
	const n = 12 // rows 1 to 6 have settled, 7 to 12 have not
	whole := place(t, n)
	other := place(t, n)
	db := open(t, whole)
	early, err := db.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, db)
	for _, row := range []struct {
		name string
		do   []string
		bad  int64
		kind ledger.Kind
		late bool // only a checkpoint from elsewhere shows it
	}{
		{"edit a settled row", []string{"UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 3"}, 3, ledger.Edited, false},
		{"edit a recent row", []string{"UPDATE recent SET body = replace(body, 'allow', 'deny') WHERE seq = 9"}, 9, ledger.Edited, false},
		{"edit a hash", []string{"UPDATE rows SET hash = zeroblob(32) WHERE seq = 1"}, 1, ledger.Edited, false},
		{"edit a seal", []string{"UPDATE recent SET seal = zeroblob(16) WHERE seq = 9"}, 9, ledger.Edited, false},
		{"shorten a hash", []string{"UPDATE rows SET hash = zeroblob(3) WHERE seq = 2"}, 2, ledger.Edited, false},
		{"a text that is no JSON", []string{"UPDATE recent SET body = 'x' WHERE seq = 9"}, 9, ledger.Edited, false},
		{"delete the first", []string{"DELETE FROM rows WHERE seq = 1"}, 1, ledger.Removed, false},
		{"delete some", []string{"DELETE FROM rows WHERE seq BETWEEN 3 AND 5"}, 3, ledger.Removed, false},
		{"delete one and renumber", append([]string{"DELETE FROM recent WHERE seq = 8"}, shift("recent", 9, -1)...), 8, ledger.Removed, false},
		{"insert a copy", append(shift("recent", 8, 1), "INSERT INTO recent SELECT 8, hash, seal, body FROM rows WHERE seq = 2"), 8, ledger.Inserted, false},
		{"insert a new one", append(shift("recent", 8, 1), "INSERT INTO recent VALUES (8, zeroblob(32), zeroblob(16), '{}')"), 8, ledger.Inserted, false},
		{"swap", []string{"UPDATE rows SET seq = -2 WHERE seq = 2; UPDATE rows SET seq = 2 WHERE seq = 5; UPDATE rows SET seq = 5 WHERE seq = -2"}, 2, ledger.Reordered, false},
		{"a number in both tables", []string{"INSERT INTO rows (seq, hash, seal, body) SELECT seq, hash, seal, body FROM recent WHERE seq = 7"}, 7, ledger.Inserted, false},
		{"splice", []string{
			fmt.Sprintf("ATTACH 'file:%s' AS other; DELETE FROM rows WHERE seq = 4", other.Path),
			"INSERT INTO rows (seq, hash, seal, body) SELECT seq, hash, seal, body FROM other.rows WHERE seq = 4",
		}, 4, ledger.Edited, false},
		{"cut the end", []string{"DELETE FROM recent WHERE seq > 9"}, 10, ledger.Cut, true},
		{"cut all of it", []string{"DELETE FROM rows; DELETE FROM recent"}, 1, ledger.Cut, true},
		{"append", []string{"INSERT INTO recent VALUES (13, zeroblob(32), zeroblob(16), '{}')"}, 13, ledger.Edited, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := whole.copyTo(t, t.TempDir())
			edit(t, o.Path, row.do...)
			before, err := os.ReadFile(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			alone := o
			alone.CheckpointFile = ""
			db := open(t, alone)
			if got := db.Err(); errors.Is(got, ledger.ErrDamaged) == row.late {
				t.Errorf("opened without the second place: %v", got)
			}
			if !row.late {
				err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent})
				if want := fmt.Sprintf(" %d", row.bad); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), want) {
					t.Errorf("recording in it: %v", err)
				}
				finds(t, db, nil, row.bad, row.kind)
			}
			finds(t, db, &early, row.bad, row.kind)
			closeStore(t, db)
			db = open(t, o)
			if err := db.Err(); !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("opened with the second place: %v", err)
			}
			closeStore(t, db)
			if after, err := os.ReadFile(o.Path); err != nil || string(after) != string(before) {
				t.Errorf("the damaged file was written to: %v", err)
			}
		})
	}
}

func TestOlderCopy(t *testing.T) {
	o := place(t, 10)
	old := o.copyTo(t, t.TempDir())
	db := open(t, o)
	put(t, db, 5)
	closeStore(t, db)
	data, err := os.ReadFile(old.Path)
	if err == nil {
		err = os.WriteFile(o.Path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, o).Err(); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "rows 11 to 15 are missing") {
		t.Errorf("an older copy: %v", err)
	}
	o.CheckpointFile = ""
	if err := open(t, o).Err(); err != nil {
		t.Errorf("without a second place it cannot be told: %v", err)
	}
}

// What stands beside the rows counts as well.
func TestTamperedSurroundings(t *testing.T) {
	whole := place(t, 4)
	other := place(t, 4)
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name string
		do   func(o Options)
		says string
	}{
		{"the store's name", func(o Options) { edit(t, o.Path, "UPDATE meta SET value = 'x' WHERE name = 'store'") }, "its name was changed"},
		{"the store's seal", func(o Options) { edit(t, o.Path, "DELETE FROM meta WHERE name = 'seal'") }, "its name was changed"},
		{"no key", func(o Options) { os.Remove(o.Key) }, "is gone"},
		{"another key", func(o Options) { move(other.copyTo(t, t.TempDir()).Key, o.Key) }, "is not its key"},
		{"half a key", func(o Options) { os.Truncate(o.Key, 16) }, "has not 32 bytes"},
		{"no file", func(o Options) { os.Remove(o.Path) }, "its key is there"},
		{"an empty file", func(o Options) { os.Truncate(o.Path, 0) }, "is empty"},
		{"no file and no key", func(o Options) { os.Remove(o.Path); os.Remove(o.Key) }, "has a checkpoint of it"},
		{"half a file", func(o Options) { os.Truncate(o.Path, 20_000) }, "malformed"},
		{"no database", func(o Options) { os.WriteFile(o.Path, []byte(strings.Repeat("text ", 5000)), 0o600) }, "not a database"},
		{"a table", func(o Options) { edit(t, o.Path, "DROP VIEW log; DROP TABLE rows") }, "its schema was changed (TABLE rows)"},
		{"a trigger", func(o Options) {
			edit(t, o.Path, "CREATE TRIGGER x BEFORE INSERT ON recent BEGIN SELECT RAISE(IGNORE); END")
		}, "its schema was changed (a trigger"},
		{"no table meta", func(o Options) { edit(t, o.Path, "DROP TABLE meta") }, "no such table"},
		{"an expression", func(o Options) {
			edit(t, o.Path, "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, '$.risk', '$.run') WHERE name = 'rows'")
		}, "its schema was changed (TABLE rows)"},
		{"another log", func(o Options) {
			c := other.copyTo(t, t.TempDir())
			move(c.Path, o.Path)
			move(c.Key, o.Key)
		}, "of another log"},
		{"another log's checkpoints", func(o Options) { move(other.copyTo(t, t.TempDir()).CheckpointFile, o.CheckpointFile) }, "of another log"},
		{"an edited checkpoint", func(o Options) {
			text, _ := os.ReadFile(o.CheckpointFile)
			os.WriteFile(o.CheckpointFile, []byte(strings.Replace(string(text), "seq=4", "seq=3", 1)), 0o600)
		}, "not signed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := whole.copyTo(t, t.TempDir())
			row.do(o)
			db := open(t, o)
			for _, err := range []error{db.Err(), db.Record(t.Context(), ledger.Record{Event: ledger.Intent})} {
				if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v, want %q", err, row.says)
				}
			}
		})
	}
}

// TestDamagedBytes flips bytes of the file: either it is found, or nothing
// that was kept has changed.
func TestDamagedBytes(t *testing.T) { damageBytes(t, 150) }

func damageBytes(t *testing.T, times int) {
	o := place(t, 10)
	o.CheckpointFile = ""
	db := open(t, o)
	want := all(t, db)
	closeStore(t, db)
	clean, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range times {
		at, bit := random.IntN(len(clean)), byte(1)<<random.IntN(8)
		data := append([]byte(nil), clean...)
		data[at] ^= bit
		if err := os.WriteFile(o.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(t.Context(), o)
		if err != nil { // such as a version of the file that SQLite cannot write
			found++
			continue
		}
		report, verr := db.Verify(t.Context(), nil)
		switch {
		case db.Err() != nil || verr != nil || !report.Whole:
			found++
		default:
			if diff := cmp.Diff(want, all(t, db)); diff != "" {
				t.Errorf("byte %d, bit %d: unseen (-want +got):\n%s", at, bit, diff)
			}
		}
		closeStore(t, db)
	}
	if found == 0 {
		t.Errorf("none of %d damages was found", times)
	}
}

func all(t testing.TB, db *DB) (rows []ledger.Row) {
	t.Helper()
	for row, err := range db.Rows(t.Context(), ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// The check at the start covers the end of a long log; the rest is found while
// the bridge works.
func TestOldDamage(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	db := open(t, o)
	load(t, db, checkedTail+500)
	closeStore(t, db)
	edit(t, o.Path, "UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 100")
	db = open(t, o)
	db.behind.Wait()
	for range 2 { // and it stays found
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "row 100 was edited") {
			t.Errorf("recording in a log with an edited row: %v", err)
		}
	}
	if _, err := Repair(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	put(t, db, 1)
}

func TestRepair(t *testing.T) {
	o := place(t, 12)
	if _, err := Repair(t.Context(), o); !errors.Is(err, ErrWhole) {
		t.Fatalf("repairing a whole log: %v", err)
	}
	db := open(t, o) // a bridge that runs meanwhile
	good := all(t, db)[4]
	edit(t, o.Path, "UPDATE rows SET body = '{}' WHERE seq = 6")
	done, err := Repair(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Repaired{Last: 5, Hash: good.Hash, Why: "row 6 was edited"}, done, cmpopts.IgnoreFields(Repaired{}, "Store", "Old")); diff != "" {
		t.Errorf("repaired (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(done.Old, o.Path+".damaged-") {
		t.Errorf("the damaged log was set aside as %s", done.Old)
	}
	if _, err := os.Stat(done.Old); err != nil {
		t.Error(err)
	}
	put(t, db, 2)
	rows := all(t, db)
	var detail Repaired
	if err := json.Unmarshal(rows[0].Record.Detail, &detail); err != nil || rows[0].Record.Event != ledger.Repaired {
		t.Errorf("the new log begins with %+v, %v", rows[0].Record, err)
	}
	if diff := cmp.Diff(done, detail); diff != "" {
		t.Errorf("recorded of the repair (-want +got):\n%s", diff)
	}
	if len(rows) != 3 {
		t.Errorf("the new log has %d rows, want 3", len(rows))
	}
	if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole {
		t.Errorf("the new log: %+v, %v", report, err)
	}
	closeStore(t, db)
	if err := open(t, o).Err(); err != nil { // also against the second place
		t.Error(err)
	}

	for name, harm := range map[string]func(){
		"no file":              func() { os.Remove(o.Path) },
		"no key":               func() { os.Remove(o.Key) },
		"half a key":           func() { os.Truncate(o.Key, 3) },
		"an empty file":        func() { os.Truncate(o.Path, 0) },
		"no database":          func() { os.WriteFile(o.Path, make([]byte, 9999), 0o600) },
		"a -wal without a log": func() { os.Rename(o.Path, o.Path+"-wal"); os.Remove(o.Key) },
	} {
		harm()
		db := open(t, o)
		if err := db.Err(); !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Repair(t.Context(), o); err != nil {
			t.Errorf("%s: repair: %v", name, err)
		}
		put(t, db, 1)
		closeStore(t, db)
	}
	left, err := filepath.Glob(o.Path + ".damaged-*")
	if err != nil || len(left) < 4 {
		t.Errorf("set aside: %q, %v", left, err)
	}
}

// A file of a newer release is used if that release says so, and left alone if
// not.
func TestNewerSchema(t *testing.T) {
	o := place(t, 4)
	edit(t, o.Path, "CREATE TABLE later (x); PRAGMA user_version = 7")
	db := open(t, o)
	put(t, db, 2)
	settled(t, db)
	if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole {
		t.Errorf("a newer file that this release can use: %+v, %v", report, err)
	}
	closeStore(t, db)
	edit(t, o.Path, "UPDATE meta SET value = '7' WHERE name = 'oldest'")
	if _, err := Open(t.Context(), o); err == nil || errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("a newer file that this release cannot use: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"a folder":                 {Path: dir},
		"below a file":             {Path: filepath.Join(file, "audit.db")},
		"nothing, reading only":    {Path: filepath.Join(dir, "none.db"), ReadOnly: true},
		"a network file system":    {Path: filepath.Join(dir, "n.db"), networkFS: func(string) string { return "NFS" }},
		"a folder without a place": {Path: filepath.Join(dir, "b.db"), Key: filepath.Join(dir, "none", "key")},
	} {
		db, err := Open(t.Context(), o)
		if err == nil {
			closeStore(t, db)
		}
		if err == nil || errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	o := place(t, 6)
	db := open(t, o)
	o.ReadOnly = true
	reader := open(t, o)
	if got := all(t, reader); len(got) != 6 {
		t.Errorf("%d rows", len(got))
	}
	changed := reader.Changed()
	put(t, db, 1)
	<-changed
	if got := all(t, reader); len(got) != 7 {
		t.Errorf("%d rows after another", len(got))
	}
	if report, err := reader.Verify(t.Context(), nil); err != nil || !report.Whole {
		t.Errorf("verify: %+v, %v", report, err)
	}
	if err := reader.Record(t.Context(), ledger.Record{}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("recording: %v", err)
	}
	if _, err := reader.Prune(t.Context(), time.Now()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("pruning: %v", err)
	}
}

func TestOnlyTheOwnerReads(t *testing.T) {
	o := place(t, 2)
	db := open(t, o)
	put(t, db, 1)
	for _, path := range []string{o.Path, o.Path + "-wal", o.Path + "-shm", o.Key, o.CheckpointFile} {
		info, err := os.Stat(path)
		if err != nil || permissions(info)&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	closeStore(t, db)
	deeper := Options{Path: filepath.Join(t.TempDir(), "a", "b", "audit.db")}
	put(t, open(t, deeper), 1)
	if info, err := os.Stat(filepath.Dir(deeper.Path)); err != nil || permissions(info) != permissions(info)&0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(o.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, o)
	if info, err := os.Stat(o.Path); err != nil || permissions(info)&0o077 != 0 {
		t.Errorf("a file that others could read: %v, %v", info.Mode(), err)
	}
}

func TestKey(t *testing.T) {
	o := place(t, 2)
	db := open(t, o)
	a, err := db.Key("fingerprints")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := db.Key("other")
	closeStore(t, db)
	again, err := open(t, o).Key("fingerprints")
	secret, _ := os.ReadFile(o.Key)
	if err != nil || len(a) != 32 {
		t.Errorf("a key of %d bytes, %v", len(a), err)
	}
	if diff := cmp.Diff(a, again); diff != "" {
		t.Errorf("another key when it is opened again (-before +after):\n%s", diff)
	}
	if bytes.Equal(a, b) || bytes.Equal(a, secret) {
		t.Errorf("the key %x is that of another use, %x, or the secret itself", a, b)
	}
}

// A caller may give up while its record waits: then it is not kept.
func TestGivingUp(t *testing.T) {
	db := open(t, place(t, 0))
	busy, free := make(chan struct{}), make(chan struct{})
	results := make(chan error, 300)
	go func() {
		results <- db.ask(t.Context(), func(context.Context, *file) error {
			close(busy)
			<-free
			return nil
		})
	}()
	<-busy
	send := func(ctx context.Context, run string) {
		go func() { results <- db.Record(ctx, ledger.Record{Event: ledger.Intent, Run: run}) }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	send(ctx, "given up")
	until(t, func() bool { return db.queue.Len() == 1 })
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	const many = 256 // of which a transaction takes a part
	for range many {
		send(t.Context(), "patient")
	}
	until(t, func() bool { return db.queue.Len() == 1+many }) // with the one that nobody wants any more
	close(free)
	for range many + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := all(t, db); len(got) != many || got[0].Record.Run != "patient" {
		t.Errorf("kept %d records, the first of %q", len(got), got[0].Record.Run)
	}
}

// until waits for a condition that another goroutine makes true.
func until(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a minute passed")
		}
	}
}

// A trigger that appears while the log is written swallows no row unseen.
func TestTriggerWhileItIsWritten(t *testing.T) {
	o := place(t, 3)
	db := open(t, o)
	edit(t, o.Path, "CREATE TRIGGER x BEFORE INSERT ON recent BEGIN SELECT RAISE(IGNORE); END")
	if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Time: time.Now()}); err == nil {
		t.Error("a record that was swallowed counts as kept")
	}
	if err := db.Close(); err != nil {
		t.Log(err) // it cannot write its last checkpoint
	}
}
