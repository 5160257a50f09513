//go:build unix

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/ledger"
)

// long leaves a test out of a short run, which the race detector makes slow: it reads long
// logs again and again, with the goroutines of TestOneProcessVerifies.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short reads few long logs")
	}
}

// longLog makes a closed log of n rows, of which the last have not settled.
func longLog(t testing.TB, n int) Options {
	t.Helper()
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	o.setDefaults()
	db := open(t, o)
	fillFast(t, db, n-100)
	settled(t, db)
	fillFast(t, db, 100)
	closeStore(t, db)
	return o
}

// wholeLog returns a copy of one such log of rowsOfLong rows, which is made once.
func wholeLog(t testing.TB) Options {
	t.Helper()
	masterLog.Do(func() {
		dir, err := os.MkdirTemp("", "sqlstore-")
		if err != nil {
			t.Fatal(err)
		}
		masterLog.Options = longLog(t, rowsOfLong).copyTo(t, dir)
	})
	return masterLog.copyTo(t, t.TempDir())
}

// fillFast writes n rows in large transactions.
func fillFast(t testing.TB, db *DB, n int) {
	t.Helper()
	for done := 0; done < n; {
		var batch []*ledger.Item
		for ; len(batch) < 1_000 && done < n; done++ {
			r, outcome := call(done / 2)
			if done%2 == 1 {
				r = outcome
			}
			body, err := ledger.Encode(r, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, &ledger.Item{Bodies: [][]byte{body}})
		}
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error { return f.add(ctx, db.o.Path, batch, false) }); err != nil {
			t.Fatal(err)
		}
	}
}

// hasDamage checks that a store refuses records because of this; for nothing, that it
// does not.
func hasDamage(t *testing.T, db *DB, when, want string) {
	t.Helper()
	err := db.Err()
	if want == "" && err != nil || want != "" && (!errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", when, err, want)
	}
}

func note(t *testing.T, db *DB) Verified {
	t.Helper()
	v, err := db.Verified()
	must(t, err)
	return v
}

const rowsOfLong = 2*checkedTail + 2_500

// Damage before the mark is not found when the log is opened, but by audit verify, and
// within a day by every bridge that has the log open; and from then on at once.
func TestOldDamageIsFoundWithinADay(t *testing.T) {
	long(t)
	o := wholeLog(t)
	synctest.Test(t, func(t *testing.T) {
		db := open(t, o)
		time.Sleep(time.Minute) // nothing is known of it: it is verified at once
		v := note(t, db)
		if v.Part != nil || v.Ended.IsZero() || v.First != 1 || v.Last < rowsOfLong {
			t.Fatalf("noted %+v", v)
		}
		closeStore(t, db)
		edit(t, o.Path, "UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 100")

		db, other := open(t, o), open(t, o)
		time.Sleep(22 * time.Hour)
		hasDamage(t, db, "before a day has passed", "")
		if got := note(t, db); got.Ended != v.Ended {
			t.Errorf("verified again after %v", got.Ended.Sub(v.Ended))
		}
		finds(t, db, nil, 100, ledger.Edited)
		time.Sleep(2*time.Hour + 5*time.Minute)
		hasDamage(t, db, "after a day", "row 100 was edited")
		hasDamage(t, other, "in another process", "row 100 was edited")
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("recording in it: %v", err)
		}
		closeStore(t, db)
		closeStore(t, other)
		for range 2 {
			db = open(t, o)
			hasDamage(t, db, "opened again", "row 100 was edited")
			closeStore(t, db)
		}
		edit(t, o.Path, "UPDATE rows SET body = replace(body, 'deny', 'allow') WHERE seq = 100")
		db = open(t, o)
		time.Sleep(time.Minute)
		hasDamage(t, db, "mended", "")
		if got := note(t, db); got.Part != nil || !got.Ended.After(v.Ended) {
			t.Errorf("mended, and noted %+v", got)
		}
		closeStore(t, db)
	})
}

// Whatever is done to the note of the last verification, the damage that it should
// hide is found no later.
func TestForgedNote(t *testing.T) {
	long(t)
	master := wholeLog(t)
	for name, forge := range map[string]func(t *testing.T, file string, old []byte){
		"removed": func(t *testing.T, file string, _ []byte) { must(t, os.Remove(file)) },
		"emptied": func(t *testing.T, file string, _ []byte) { must(t, os.WriteFile(file, nil, 0o600)) },
		"later": func(t *testing.T, file string, _ []byte) {
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, []byte(strings.Replace(string(text), `"began":"2`, `"began":"3`, 1)), 0o600))
		},
		"a folder": func(t *testing.T, file string, _ []byte) { must(t, os.Remove(file)); must(t, os.Mkdir(file, 0o700)) },
		"a pipe": func(t *testing.T, file string, _ []byte) {
			must(t, os.Remove(file))
			must(t, syscall.Mkfifo(file, 0o600))
		},
		"an older one": func(t *testing.T, file string, old []byte) { must(t, os.WriteFile(file, old, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := master.copyTo(t, t.TempDir())
			synctest.Test(t, func(t *testing.T) {
				db := open(t, o)
				time.Sleep(time.Minute)
				old, err := os.ReadFile(o.verifiedFile())
				must(t, err)
				time.Sleep(24*time.Hour + time.Minute)
				if note(t, db).Ended.Before(time.Now().Add(-time.Hour)) {
					t.Fatal("it was not verified again after a day")
				}
				closeStore(t, db)
				edit(t, o.Path, "UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 100")
				forge(t, o.verifiedFile(), old)
				db = open(t, o)
				time.Sleep(time.Minute)
				hasDamage(t, db, "with that note", "row 100 was edited")
				closeStore(t, db)
			})
		})
	}
}

// A verification that its process did not end is gone on with, for a day: the note of
// an unfinished one that is put back again and again hides nothing for longer.
func TestVerificationGoesOn(t *testing.T) {
	long(t)
	o := wholeLog(t)
	synctest.Test(t, func(t *testing.T) {
		db := open(t, o)
		time.Sleep(2*leastRest + leastRest/2)
		closeStore(t, db)
		db = open(t, o)
		v := note(t, db)
		if v.Part == nil || v.Part.Last < chunkRows || v.Part.Last%chunkRows != 0 || v.Part.Last >= rowsOfLong {
			t.Fatalf("noted %+v", v.Part)
		}
		closeStore(t, db)
		part, err := os.ReadFile(o.verifiedFile())
		must(t, err)

		edit(t, o.Path, "UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 100") // which it has passed
		db = open(t, o)
		time.Sleep(time.Minute)
		if got := note(t, db); got.Part != nil || got.Began != v.Part.Began || got.Last < rowsOfLong {
			t.Errorf("gone on with, it noted %+v", got)
		}
		hasDamage(t, db, "verified before the damage", "")
		closeStore(t, db)

		must(t, os.WriteFile(o.verifiedFile(), part, 0o600))
		time.Sleep(25 * time.Hour)
		must(t, os.WriteFile(o.verifiedFile(), part, 0o600))
		db = open(t, o)
		time.Sleep(time.Minute)
		hasDamage(t, db, "the unfinished note a day later", "row 100 was edited")
		closeStore(t, db)
	})
}

// So is the note of one that only has the last rows left.
func TestOldNoteOfAnAlmostWholeLog(t *testing.T) {
	long(t)
	o := wholeLog(t)
	synctest.Test(t, func(t *testing.T) {
		db := open(t, o)
		time.Sleep(time.Minute)
		v := note(t, db)
		f, err := db.reading()
		must(t, err)
		must(t, verifier{f}.noteVerified(&o, Verified{Store: v.Store, Part: &Part{Began: v.Began, First: v.First, Last: v.Last, Hash: v.Hash}}))
		part, err := os.ReadFile(o.verifiedFile())
		must(t, err)
		closeStore(t, db)

		edit(t, o.Path, "UPDATE rows SET body = replace(body, 'allow', 'deny') WHERE seq = 100")
		time.Sleep(25 * time.Hour)
		must(t, os.WriteFile(o.verifiedFile(), part, 0o600))
		db = open(t, o)
		for range 10 {
			time.Sleep(dueEvery - time.Second) // the next look is a little later
			must(t, os.WriteFile(o.verifiedFile(), part, 0o600))
		}
		hasDamage(t, db, "the note put back again and again", "row 100 was edited")
		closeStore(t, db)
	})
}

// A lock that cannot be had keeps nobody from verifying for longer than a day.
func TestLockThatCannotBeHad(t *testing.T) {
	long(t)
	o := wholeLog(t)
	must(t, os.Mkdir(o.verifiedFile()+".lock", 0o700))
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		db := open(t, o)
		time.Sleep(wholeEvery + 5*time.Minute)
		if v := note(t, db); v.Ended.Before(began.Add(wholeEvery)) {
			t.Errorf("after a day: %+v", v)
		}
		closeStore(t, db)
	})
}

// One process verifies at a time. One that holds the lock and does nothing keeps the
// others away for a day.
func TestOneProcessVerifies(t *testing.T) {
	o := wholeLog(t)
	lock, err := os.OpenFile(o.verifiedFile()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer lock.Close()
	must(t, filelock.Try(lock))
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		db := open(t, o)
		time.Sleep(23 * time.Hour)
		if v := note(t, db); !v.Began.IsZero() || v.Part != nil {
			t.Errorf("another process has the lock, and this one noted %+v", v)
		}
		time.Sleep(time.Hour + 5*time.Minute)
		if v := note(t, db); v.Ended.Before(began.Add(wholeEvery)) {
			t.Errorf("after a day with the lock held: %+v", v)
		}
		closeStore(t, db)
	})
}

// A verification goes on while rows are pruned and written.
func TestVerificationBesideOthers(t *testing.T) {
	o := wholeLog(t)
	var half time.Time
	synctest.Test(t, func(t *testing.T) {
		db := open(t, o)
		time.Sleep(leastRest / 2) // one chunk is done
		rows := 0
		for row, err := range db.Rows(t.Context(), ledger.Query{After: rowsOfLong / 2, Limit: 1}) {
			must(t, err)
			half, rows = row.Record.Time, rows+1
		}
		n, err := db.Prune(t.Context(), half)
		if rows != 1 || n < chunkRows || err != nil {
			t.Fatalf("pruned %d: %v", n, err)
		}
		put(t, db, 10)
		time.Sleep(time.Minute)
		hasDamage(t, db, "pruned meanwhile", "")
		if v := note(t, db); v.Ended.IsZero() || v.First != n+1 || v.Last < rowsOfLong+11 {
			t.Errorf("pruned %d, noted %+v", n, v)
		}
		closeStore(t, db)
		edit(t, o.Path, fmt.Sprintf("DELETE FROM rows WHERE seq = %d", n+1))
		db = open(t, o)
		hasDamage(t, db, "a row after the pruned ones is gone", fmt.Sprintf("rows %d to %[1]d are missing", n+1))
		closeStore(t, db)
	})
}

// What can be found in a long log without reading all of it is found when it is opened.
func TestLongLogAtItsStart(t *testing.T) {
	long(t)
	master := wholeLog(t)
	for name, row := range map[string]struct {
		damage []string
		want   string
	}{
		"nothing":                           {nil, ""},
		"the mark removed":                  {[]string{"DELETE FROM meta WHERE name = 'mark'"}, ""},
		"the mark forged":                   {[]string{"UPDATE meta SET value = replace(value, 'seq=1', 'seq=2') WHERE name = 'mark'"}, "its mark was changed"},
		"the mark is no text of ours":       {[]string{"UPDATE meta SET value = '' WHERE name = 'mark'"}, "its mark was changed"},
		"cut off before the mark":           {[]string{"DELETE FROM recent", "DELETE FROM rows WHERE seq > 11000"}, "is missing: the end was cut off"},
		"all rows gone":                     {[]string{"DELETE FROM recent", "DELETE FROM rows"}, "is missing: the end was cut off"},
		"the first rows gone":               {[]string{"DELETE FROM rows WHERE seq <= 100"}, "rows 1 to 100 are missing"},
		"edited among the last rows":        {[]string{fmt.Sprintf("UPDATE rows SET body = '{}' WHERE seq = %d", rowsOfLong-checkedTail+10)}, "was edited"},
		"the hash of the mark's row edited": {[]string{"UPDATE rows SET hash = zeroblob(32) WHERE seq = (SELECT max(seq)/1000*1000 FROM rows)"}, "row 12000 is not the one that was written"},
	} {
		t.Run(name, func(t *testing.T) {
			o := master.copyTo(t, t.TempDir())
			edit(t, o.Path, row.damage...)
			db := open(t, o)
			hasDamage(t, db, name, row.want)
			report, err := db.Verify(t.Context(), nil)
			if err != nil || report.Whole != (row.want == "") {
				t.Errorf("verified: %+v, %v", report, err)
			}
			closeStore(t, db)
		})
	}
	t.Run("since an old mark", func(t *testing.T) {
		o := master.copyTo(t, t.TempDir())
		db := open(t, o)
		c, err := db.file.read.Conn(t.Context())
		must(t, err)
		old, err := rowAt(t.Context(), c, 3_000)
		must(t, err)
		signed := ledger.Checkpoint{Store: db.file.id, Seq: old.Seq, Hash: old.Hash, Time: time.Now()}
		signed.Sign(db.file.key)
		must(t, c.Close())
		closeStore(t, db)
		edit(t, o.Path, "UPDATE meta SET value = '"+signed.String()+"' WHERE name = 'mark'", "UPDATE rows SET body = '{}' WHERE seq = 3100")
		db = open(t, o)
		hasDamage(t, db, "an older release wrote the rows since", "row 3100 was edited")
		closeStore(t, db)
	})
}

// BenchmarkOpen measures the opening of a long log, and what it costs: SQLSTORE_ROWS
// says how long.
func BenchmarkOpen(b *testing.B) {
	o := longLog(b, benchRows())
	for b.Loop() {
		closeStore(b, open(b, o))
	}
}
