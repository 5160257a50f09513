package sqlstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestJournals(t *testing.T) {
	storetest.Journals(t, func(t *testing.T) (storetest.Journaled, func(*testing.T) storetest.Journaled) {
		o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
		return open(t, o), func(t *testing.T) storetest.Journaled { return open(t, o) }
	})
}

// begin makes journals of two calls each, which share bytes.
func begin(t testing.TB, db *DB, runs ...string) {
	t.Helper()
	for _, run := range runs {
		if err := db.Append(t.Context(),
			ledger.JournalEntry{Run: run, Kind: ledger.Began, Owner: "x", Shared: "tools", Common: []byte("names of tools"), Body: []byte("a secret script")},
			ledger.JournalEntry{Run: run, Kind: ledger.Sent, Owner: "x", Call: 1, Body: []byte("a secret argument")},
			ledger.JournalEntry{Run: run, Kind: ledger.Sent, Owner: "x", Call: 2, Body: []byte("a secret argument")},
			ledger.JournalEntry{Run: run, Kind: ledger.Replied, Owner: "x", Call: 1, Body: []byte("a secret answer")},
		); err != nil {
			t.Fatal(err)
		}
	}
}

// bothKept checks that a run has as many records as entries after its first.
func bothKept(db *DB, run string) error {
	records := 0
	for _, err := range db.Rows(background, ledger.Query{Runs: []string{run}}) {
		if err != nil {
			return err
		}
		records++
	}
	_, entries, err := db.Read(background, run)
	if err == nil && len(entries) != 1+records {
		err = fmt.Errorf("run %s has %d records, and %d entries", run, records, len(entries))
	}
	return err
}

// whole is 4 entries: began, sent 1, sent 2, settled 1. The journal of r has
// number 1, of q number 2.
func TestJournalTampered(t *testing.T) {
	const place = "UPDATE entries SET id = (1 << 32) | %d WHERE id = (1 << 32) | %d; "
	whole := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	whole.setDefaults()
	whole.CheckpointFile = whole.Path + ".checkpoints"
	if err := os.WriteFile(whole.CheckpointFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := open(t, whole)
	begin(t, db, "r", "q")
	closeStore(t, db)
	for name, do := range map[string]string{
		"a body is edited":              "UPDATE entries SET body = zeroblob(100) WHERE id = (1 << 32) | 2",
		"a body is emptied":             "UPDATE entries SET body = x'' WHERE id = (1 << 32) | 4",
		"two are swapped":               fmt.Sprintf(place+place+place, 9, 2, 2, 3, 3, 9),
		"two bodies are swapped":        "UPDATE entries SET body = (SELECT body FROM entries WHERE id = (1 << 32) | 3) WHERE id = (1 << 32) | 2",
		"another run's":                 "UPDATE entries SET body = (SELECT body FROM entries WHERE id = (2 << 32) | 2) WHERE id = (1 << 32) | 2",
		"all are another run's":         "DELETE FROM entries WHERE id < 2 << 32; UPDATE entries SET id = id - (1 << 32) WHERE id > 2 << 32",
		"another kind":                  "UPDATE entries SET kind = 'settled' WHERE id = (1 << 32) | 3",
		"another call":                  "UPDATE entries SET call = 3 WHERE id = (1 << 32) | 3",
		"another size":                  "UPDATE entries SET total = total + 1 WHERE id = (1 << 32) | 4",
		"one is removed":                "DELETE FROM entries WHERE id = (1 << 32) | 2",
		"one is removed, the next move": "DELETE FROM entries WHERE id = (1 << 32) | 2; " + fmt.Sprintf(place+place, 2, 3, 3, 4),
		"the first is removed":          "DELETE FROM entries WHERE id = (1 << 32) | 1",
		"one is said twice":             "INSERT INTO entries SELECT id + 2, kind, call, total, body FROM entries WHERE id = (1 << 32) | 3",
		"all are removed":               "DELETE FROM entries WHERE id < 2 << 32",
		"the shared bytes are edited":   "UPDATE shared SET body = x'00'",
		"the shared bytes are removed":  "DELETE FROM shared",
		"other shared bytes":            "INSERT INTO shared VALUES ('other', x'', x'00'); UPDATE journals SET shared = 'other' WHERE run = 'r'",
		"another name of shared bytes":  "INSERT INTO shared SELECT 'other', hash, body FROM shared; UPDATE journals SET shared = 'other' WHERE run = 'r'",
		"without its shared bytes":      "UPDATE journals SET shared = '' WHERE run = 'r'",
		"another run":                   "UPDATE journals SET run = 'r3' WHERE run = 'q'; UPDATE journals SET run = 'q' WHERE run = 'r'; UPDATE journals SET run = 'r' WHERE run = 'r3'",
	} {
		t.Run(name, func(t *testing.T) {
			o := whole.copyTo(t, t.TempDir())
			edit(t, o.Path, do)
			db := open(t, o)
			_, entries, err := db.Read(t.Context(), "r")
			if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "the journal of run r:") || len(entries) > 0 {
				t.Errorf("read with %d entries, %v", len(entries), err)
			}
			if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole || db.Err() != nil {
				t.Errorf("the log itself: %+v, %v; the store says %v", report, err, db.Err())
			}
			if err := db.Drop(t.Context(), "r"); err != nil { // it can be done away with
				t.Error(err)
			}
		})
	}
}

// With another key nothing of a journal can be read.
func TestJournalNeedsItsKey(t *testing.T) {
	o := place(t, 4)
	db := open(t, o)
	begin(t, db, "r")
	closeStore(t, db)
	if err := os.Remove(o.Key); err != nil {
		t.Fatal(err)
	}
	if _, entries, err := open(t, o).Read(t.Context(), "r"); !errors.Is(err, ledger.ErrDamaged) || len(entries) > 0 {
		t.Errorf("read without the key: %d entries, %v", len(entries), err)
	}
}

// Nothing that an entry holds stands in the files in clear.
func TestJournalIsEncrypted(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	db := open(t, o)
	begin(t, db, "r", "q")
	found := func() (secret, shared bool) {
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(o.Path + suffix)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			secret = secret || bytes.Contains(data, []byte("secret"))
			shared = shared || bytes.Contains(data, []byte("names of tools"))
		}
		return secret, shared
	}
	for _, state := range []string{"open", "closed"} {
		if secret, shared := found(); secret || !shared {
			t.Errorf("%s: a body is found: %v; shared bytes are: %v", state, secret, shared)
		}
		closeStore(t, db)
	}
	bodies := make(map[string]bool) // the same text never looks the same
	raw, err := connect(o.Path, "ro", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.Query("SELECT hex(body) FROM entries")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil || bodies[body] {
			t.Errorf("a body twice: %v", err)
		}
		bodies[body] = true
	}
	if len(bodies) != 8 {
		t.Errorf("%d bodies", len(bodies))
	}
}

// older makes the file what the release before had written.
const older = "DROP TABLE entries; DROP TABLE journals; DROP TABLE shared; DROP TABLE configurations; DROP TABLE leases; DROP TABLE uses; " +
	"UPDATE meta SET value = '1' WHERE name = 'oldest'; PRAGMA user_version = 1"

// withoutConfigurations makes it what the release wrote that had journals, and no
// configurations in them.
const withoutConfigurations = "DROP TABLE uses; DROP TABLE leases; DROP TABLE configurations; UPDATE meta SET value = '1' WHERE name = 'oldest'; PRAGMA user_version = 2"

// A run that began in a release without configurations belongs to none, in a file
// that is only read as in one that is written to; and that release is kept from a
// file in which runs belong to one.
func TestConfigurationsAreAdded(t *testing.T) {
	o := place(t, 1)
	db := open(t, o)
	begin(t, db, "old")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, o.Path, withoutConfigurations)
	whose := func(db *DB, run, want string) {
		t.Helper()
		k, _, err := db.Read(t.Context(), run)
		if err != nil || k.Configuration != want {
			t.Errorf("run %s belongs to %q, want %q: %v", run, k.Configuration, want, err)
		}
	}
	reader := o
	reader.ReadOnly = true
	whose(open(t, reader), "old", "")
	db = open(t, o)
	must(t, db.Append(t.Context(), ledger.JournalEntry{Run: "new", Kind: ledger.Began, Owner: "x", Until: time.Now().Add(time.Hour), Configuration: "conf"}))
	whose(db, "old", "")
	whose(db, "new", "conf")
	must(t, db.Drop(t.Context(), "new"))
	begin(t, db, "next") // which may get the number of the one that was dropped
	whose(db, "next", "")
	oldest := int64(0)
	must(t, db.ask(t.Context(), func(ctx context.Context, f *file) (err error) {
		oldest, err = f.number(ctx, "SELECT value FROM meta WHERE name = 'oldest'")
		return err
	}))
	if oldest != oldestReader {
		t.Errorf("release %d may use the file, want %d", oldest, oldestReader)
	}
}

// What releases without numbers of leases wrote is read, in a file that is only
// read as in one that is written to: a lease without a number, and requests in
// words that such a release finds again.
func TestLeasesAreAdded(t *testing.T) {
	o := place(t, 1)
	db := open(t, o)
	for _, run := range []string{"none", "give", "end"} {
		begin(t, db, run)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, o.Path, "DROP TABLE uses; DROP TABLE leases; PRAGMA user_version = 3; "+
		"UPDATE journals SET wanted = 'give' WHERE run = 'give'; UPDATE journals SET wanted = 'end bob' WHERE run = 'end'")
	requested := func(db *DB, run string, lease int64, handover, cancel string) {
		t.Helper()
		k, _, err := db.Read(t.Context(), run)
		must(t, err)
		want := ledger.JournaledRun{Lease: lease, HandoverRequestedBy: handover, CancelRequestedBy: cancel}
		got := ledger.JournaledRun{Lease: k.Lease, HandoverRequestedBy: k.HandoverRequestedBy, CancelRequestedBy: k.CancelRequestedBy}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %s (-want +got):\n%s", run, diff)
		}
	}
	reader := o
	reader.ReadOnly = true
	for _, db := range []*DB{open(t, reader), open(t, o)} {
		requested(db, "none", 0, "", "")
		requested(db, "give", 0, ledger.Unnamed, "")
		requested(db, "end", 0, "", "bob")
	}
	db = open(t, o)
	for _, run := range []string{"give", "end"} {
		_, err := db.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error { k.Acquire("y"); return nil })
		must(t, err)
	}
	requested(db, "give", 1, "", "")
	requested(db, "end", 1, "", "bob")
}

// A file of the release before has no journals until it is opened for writing;
// then it has.
func TestJournalsAreAdded(t *testing.T) {
	o := place(t, 6)
	edit(t, o.Path, older)
	reader := o
	reader.ReadOnly = true
	old := open(t, reader)
	look := func(when string, want int) {
		t.Helper()
		runs, err := old.Runs(t.Context())
		if err != nil || len(runs) != want {
			t.Errorf("%s: %d runs, %v", when, len(runs), err)
		}
		if _, _, err := old.Read(t.Context(), "r"); (err == nil) != (want > 0) || err != nil && !errors.Is(err, ledger.ErrNoJournal) {
			t.Errorf("%s: read: %v", when, err)
		}
		if wanted, err := old.LeaseRequests(t.Context(), "x"); err != nil || len(wanted) != 0 {
			t.Errorf("%s: wanted: %v, %v", when, wanted, err)
		}
	}
	look("before", 0)
	db := open(t, o)
	begin(t, db, "r")
	look("after", 1)
	put(t, db, 2)
	if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
		has, err := f.number(ctx, "PRAGMA user_version")
		if err != nil {
			return err
		}
		oldest, err := f.number(ctx, "SELECT value FROM meta WHERE name = 'oldest'")
		if has != version || oldest != oldestReader {
			t.Errorf("schema %d, which needs at least %d", has, oldest)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole || report.Rows != 8 {
		t.Errorf("verify: %+v, %v", report, err)
	}
	closeStore(t, db)
	closeStore(t, old)
	edit(t, o.Path, "DROP INDEX journals_wanted")
	if err := open(t, o).Err(); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "INDEX journals_wanted") {
		t.Errorf("without an index: %v", err)
	}
}

func TestJournalReadOnly(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	begin(t, open(t, o), "r")
	o.ReadOnly = true
	db := open(t, o)
	_, changed := db.ChangeRun(t.Context(), "r", func(*ledger.JournaledRun) error { return nil })
	for what, err := range map[string]error{
		"Append": db.Append(t.Context(), ledger.JournalEntry{Run: "r", Kind: ledger.Sent, Owner: "x"}), "ChangeRun": changed, "Drop": db.Drop(t.Context(), "r"),
	} {
		if !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || len(entries) != 4 {
		t.Errorf("read: %d entries, %v", len(entries), err)
	}
}

// A run began by the store's clock.
func TestJournalBegan(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db"), Clock: func() time.Time { return began }})
	begin(t, db, "r")
	if k, _, err := db.Read(t.Context(), "r"); err != nil || !k.Began.Equal(began) {
		t.Errorf("it began at %v, %v", k.Began, err)
	}
}

// What fails after an entry was written takes the entry with it.
func TestJournalRollsBack(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	db := open(t, o)
	begin(t, db, "r")
	edit(t, o.Path, "CREATE TRIGGER swallow BEFORE INSERT ON recent BEGIN SELECT RAISE(IGNORE); END")
	r := ledger.Record{Event: ledger.Intent, Run: "r", Journal: []ledger.JournalEntry{{Run: "r", Kind: ledger.Sent, Owner: "x", Call: 3}, {Run: "r", Kind: ledger.Sent, Owner: "x", Call: 4}}}
	if err := db.Record(t.Context(), r); !errors.Is(err, ledger.ErrDamaged) {
		t.Fatalf("recording: %v", err)
	}
	closeStore(t, db)
	edit(t, o.Path, "DROP TRIGGER swallow")
	db = open(t, o)
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || len(entries) != 4 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if err := db.Record(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || len(entries) != 6 || entries[5].Call != 4 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	edit(t, o.Path, "CREATE TRIGGER swallow BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
	if err := db.Record(t.Context(), r); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("an entry that was swallowed: %v", err)
	}
}

// A commit of entries alone syncs the disk where everything is to be durable,
// and one of a durable record with entries does.
func TestJournalSynchronous(t *testing.T) {
	for _, all := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { // no row moves between a commit and the look at it
			db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db"), AllDurable: all})
			level := func(what string, durable bool) {
				t.Helper()
				if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
					level, err := f.number(ctx, "PRAGMA synchronous")
					if (level == 2) != durable { // 1 is NORMAL, 2 is FULL
						t.Errorf("%s, all durable %v: synchronous is %d", what, all, level)
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
			begin(t, db, "r")
			level("entries", all)
			if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Durable: true, Journal: []ledger.JournalEntry{{Run: "r", Kind: ledger.Sent, Owner: "x"}}}); err != nil {
				t.Fatal(err)
			}
			level("a durable record", true)
			if _, err := db.ChangeRun(t.Context(), "r", func(*ledger.JournaledRun) error { return nil }); err != nil {
				t.Fatal(err)
			}
			level("a change", all)
		})
	}
}

// Shared bytes go when no journal names them: after a while, or with the store.
func TestSharedBytesGo(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	db := open(t, o)
	names := func() (all []string) {
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
			rows, err := f.conn.QueryContext(ctx, "SELECT name FROM shared ORDER BY name")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					return err
				}
				all = append(all, name)
			}
			return rows.Err()
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	other := ledger.JournalEntry{Run: "other", Kind: ledger.Began, Owner: "x", Shared: "more", Common: []byte("more")}
	begin(t, db, "r", "q")
	if err := db.Append(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	drop := func(runs ...string) {
		for _, run := range runs {
			if err := db.Drop(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	late := func() { // as if the last look had been long ago
		if err := db.ask(t.Context(), func(context.Context, *file) error {
			db.swept = time.Now().Add(-2 * sweepEvery)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	drop("other", "q")
	if got := names(); !slices.Equal(got, []string{"more", "tools"}) {
		t.Errorf("before it is looked for, %q are kept", got)
	}
	late()
	until(t, func() bool { return slices.Equal(names(), []string{"tools"}) })
	drop("r")
	closeStore(t, db)
	db = open(t, o)
	if got := names(); len(got) != 0 {
		t.Errorf("after the end %q are kept", got)
	}
	begin(t, db, "r")
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || string(entries[0].Common) != "names of tools" {
		t.Errorf("shared bytes that were gone: %v", err)
	}
}

// Old rows go without the journals; a log that is repaired begins without.
func TestJournalsWithoutTheirLog(t *testing.T) {
	o := place(t, 12)
	db := open(t, o)
	begin(t, db, "r")
	if n, err := db.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 12 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || len(entries) != 4 {
		t.Errorf("after pruning: %d entries, %v", len(entries), err)
	}
	put(t, db, 3)
	closeStore(t, db)
	edit(t, o.Path, "UPDATE recent SET body = '{}' WHERE seq = 15; UPDATE rows SET body = '{}' WHERE seq = 15")
	if _, err := Repair(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	db = open(t, o)
	if runs, err := db.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("after the repair: %+v, %v", runs, err)
	}
	begin(t, db, "r")
	if _, entries, err := db.Read(t.Context(), "r"); err != nil || len(entries) != 4 {
		t.Errorf("begun again: %d entries, %v", len(entries), err)
	}
}

// What is asked of journals does not read through their entries.
func TestJournalPlans(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
	begin(t, db, "r")
	kept := fmt.Sprintf(runsQuery, whoseRun, leaseOfRun)
	for _, row := range []struct{ query, index string }{
		{kept + " ORDER BY number", "SCAN journals"},
		{kept + " WHERE run = 'r' ORDER BY number", "SEARCH journals USING INDEX sqlite_autoindex_journals_1"},
		{kept + " WHERE owner = 'x' AND wanted <> '' ORDER BY number", "SEARCH journals USING INDEX journals_wanted"},
	} {
		var plan []string
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
			rows, err := f.conn.QueryContext(ctx, "EXPLAIN QUERY PLAN "+row.query)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					return err
				}
				plan = append(plan, step)
			}
			return rows.Err()
		}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "; ")
		for _, want := range []string{row.index, "SEARCH entries USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is done by %s; want %s", row.query, text, want)
			}
		}
		if strings.Contains(text, "B-TREE") {
			t.Errorf("%s sorts: %s", row.query, text)
		}
	}
}

// enterer writes journals until it is killed, and says each step when it is
// done.
func enterer(path, name string) error {
	db, err := Open(background, Options{Path: path})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range workers {
		go func() {
			run := fmt.Sprintf("%s-%d", name, w)
			if err := db.Append(background, ledger.JournalEntry{Run: run, Kind: ledger.Began, Owner: name}); err != nil {
				failed <- err
			}
			for i := 1; ; i++ {
				r := ledger.Record{Event: ledger.Intent, Run: run, Call: i, Durable: i%5 == 0,
					Journal: []ledger.JournalEntry{{Run: run, Kind: ledger.Sent, Owner: name, Call: i, Body: make([]byte, 700)}}}
				if err := db.Record(background, r); err != nil {
					failed <- err
				}
				if _, err := fmt.Printf("%s %d\n", run, i); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// TestJournalKilled kills a process that writes journals: each is a prefix of
// what was handed in, with all that was said to be done, and goes with its
// records.
func TestJournalKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	for round := range 6 {
		name := fmt.Sprint("round", round)
		cmd := child(t, "enter", path, name)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said := make(map[string]int)
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var run string
			var call int
			if _, err := fmt.Sscanf(lines.Text(), "%s %d", &run, &call); err != nil {
				break // it was killed while it said it
			}
			said[run] = call
			if n == 30*round {
				cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err == nil || len(said) == 0 {
			t.Fatalf("round %d: the process ended by itself: %v; it said %v", round, err, said)
		}
		db := open(t, Options{Path: path})
		for run, call := range said {
			k, entries, err := db.Read(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if kept := len(entries) - 1; kept != call && kept != call+1 || k.Owner != name || k.State != ledger.Live {
				t.Errorf("%s has said %d, %d are kept: %+v", run, call, kept, k)
			}
			for i, e := range entries[1:] {
				if e.Call != i+1 {
					t.Errorf("%s: entry %d is of call %d", run, i+1, e.Call)
				}
			}
			if err := bothKept(db, run); err != nil {
				t.Error(err)
			}
			if err := db.Drop(t.Context(), run); err != nil {
				t.Error(err)
			}
		}
		if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole {
			t.Errorf("verify: %+v, %v", report, err)
		}
		closeStore(t, db)
	}
}

// claimer wants every run and says which it got.
func claimer(path, name string) error {
	db, err := Open(background, Options{Path: path})
	if err != nil {
		return err
	}
	defer db.Close()
	runs, err := db.Runs(background)
	if err != nil {
		return err
	}
	taken := errors.New("it is taken")
	for _, k := range runs {
		_, err := db.ChangeRun(background, k.Run, func(k *ledger.JournaledRun) error {
			if k.Owner != "" {
				return taken
			}
			k.Owner = name
			return nil
		})
		if errors.Is(err, taken) {
			continue
		}
		if err == nil {
			err = db.Append(background, ledger.JournalEntry{Run: k.Run, Kind: ledger.Sent, Owner: name, Call: 3})
		}
		if err != nil {
			return err
		}
		fmt.Println(k.Run)
	}
	return nil
}

// Of processes that want the same runs at the same time, one gets each.
func TestProcessesClaimRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	db := open(t, Options{Path: path})
	const runs = 40
	for i := range runs {
		run := fmt.Sprint("r", i)
		begin(t, db, run)
		if _, err := db.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error { k.Owner, k.State = "", ledger.Paused; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	owners := make(map[string]string)
	for _, name := range []string{"a", "b", "c"} {
		wait.Go(func() {
			out, err := child(t, "claim", path, name).CombinedOutput()
			if err != nil {
				t.Errorf("process %s: %v\n%s", name, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			for run := range strings.FieldsSeq(string(out)) {
				if owners[run] != "" {
					t.Errorf("%s and %s have claimed %s", owners[run], name, run)
				}
				owners[run] = name
			}
		})
	}
	wait.Wait()
	all, err := db.Runs(t.Context())
	if err != nil || len(all) != runs || len(owners) != runs {
		t.Fatalf("%d runs, %d claimed, %v", len(all), len(owners), err)
	}
	for _, k := range all {
		if _, entries, err := db.Read(t.Context(), k.Run); err != nil || len(entries) != 5 || k.Owner != owners[k.Run] {
			t.Errorf("%s is of %s, claimed by %s, with %d entries, %v", k.Run, k.Owner, owners[k.Run], len(entries), err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What the end of a run removes is not written first, where it comes with the end: the last commit of a run writes two
// rows, and removes its first two entries and the three rows of its journal.
func TestEndWritesNoEntries(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
	var before, after int64
	changes := func(into *int64) {
		t.Helper()
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) (err error) {
			*into, err = f.number(ctx, "SELECT total_changes()")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Append(t.Context(), journaled("r", ledger.Began, ledger.Sent)...); err != nil {
		t.Fatal(err)
	}
	outcome, ended := ledger.Record{Event: ledger.Outcome, Journal: journaled("r", ledger.Replied, ledger.Noted)}, ledger.Record{Event: ledger.RunEnded, Journal: journaled("r", ledger.Ended)}
	changes(&before)
	if err := db.Record(t.Context(), outcome, ended); err != nil {
		t.Fatal(err)
	}
	changes(&after)
	if after-before != 7 {
		t.Errorf("the end of a run changes %d rows, want 7", after-before)
	}
}

// A statement is compiled once, however many runs there are: one that had a run's name or a number in its text
// would be kept for each of them.
func TestStatementsAreFew(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
	var kept int
	for run := range 30 {
		if err := runWithCall(t.Context(), db, fmt.Sprint("r", run)); err != nil {
			t.Fatal(err)
		}
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
			if _, err := f.compact(ctx, run+1); err != nil {
				return err
			}
			if run > 0 && len(f.statements) != kept {
				t.Errorf("%d statements after run %d, %d after the first", len(f.statements), run, kept)
			}
			kept = len(f.statements)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
