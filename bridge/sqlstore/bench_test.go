package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
)

// call returns the two records of the i-th call, as the gate writes them.
func call(i int) (intent, outcome ledger.Record) {
	intent = ledger.Record{
		Event: ledger.Intent, Time: time.Now(), Run: fmt.Sprintf("run-%d", i/20), Session: "stdio-1", Client: "claude-code", Profile: "supervised",
		Call: i%20 + 1, Trace: fmt.Sprintf("run-%d.%d", i/20, i%20+1), Server: "filesystem", Tool: "read_file",
		Args:   json.RawMessage(`{"path":"/home/me/project/some/file.txt"}`),
		Digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Disposition: "allow", Risk: "low",
		Reasons: []string{"allowlist filesystem__read_*"}, Revision: "0123456789abcdef", Line: 3, Column: 17,
	}
	outcome = intent
	outcome.Event, outcome.Args, outcome.Outcome, outcome.Duration, outcome.Sent, outcome.Received = ledger.Outcome, nil, ledger.Done, time.Millisecond, 45, 1200
	return intent, outcome
}

// BenchmarkRecord measures how long a caller waits for one record.
func BenchmarkRecord(b *testing.B) {
	for _, durable := range []bool{false, true} {
		for _, callers := range []int{1, 32} {
			b.Run(fmt.Sprintf("durable=%v/callers=%d", durable, callers), func(b *testing.B) {
				db := open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db"), AllDurable: durable})
				b.ReportAllocs()
				b.ResetTimer()
				var wait sync.WaitGroup
				for c := range callers {
					wait.Go(func() {
						for i := c; i < b.N; i += callers {
							intent, outcome := call(i / 2)
							if i%2 == 1 {
								intent = outcome
							}
							if err := db.Record(b.Context(), intent); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wait.Wait()
			})
		}
	}
}

// BenchmarkSteps measures the steps of a commit one by one; docs/rationale.md has the table.
func BenchmarkSteps(b *testing.B) {
	b.ReportAllocs()
	intent, outcome := call(1)
	fresh := func(b *testing.B) *DB { return open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db")}) }
	records := func(b *testing.B, all ...ledger.Record) {
		db := fresh(b)
		for b.Loop() {
			if err := db.Record(b.Context(), all...); err != nil {
				b.Fatal(err)
			}
		}
	}
	// inside runs a step in the goroutine that writes, so that it costs no hand-over.
	inside := func(b *testing.B, step func(context.Context, *file) error) {
		err := fresh(b).ask(b.Context(), func(ctx context.Context, f *file) error {
			for b.Loop() {
				if err := step(ctx, f); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("encode a row", func(b *testing.B) {
		for b.Loop() {
			if _, err := ledger.Encode(intent, time.Now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("chain and seal it", func(b *testing.B) {
		body, err := ledger.Encode(intent, time.Now)
		if err != nil {
			b.Fatal(err)
		}
		ring := ledger.NewKeyring("id", make([]byte, 32))
		for seq := int64(1); b.Loop(); seq++ {
			ring.Seal(seq, ledger.HashRow("id", seq, ledger.Hash{}, body))
		}
	})
	b.Run("hand it over", func(b *testing.B) {
		db := fresh(b)
		for b.Loop() {
			if err := db.ask(b.Context(), func(context.Context, *file) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("begin, look for others' rows, commit nothing", func(b *testing.B) {
		inside(b, func(ctx context.Context, f *file) error {
			return f.inTransaction(ctx, func() error { return f.refresh(ctx) })
		})
	})
	b.Run("the same after others' row", func(b *testing.B) {
		o := Options{Path: filepath.Join(b.TempDir(), "audit.db")}
		here, other := open(b, o), open(b, o)
		for b.Loop() {
			b.StopTimer()
			if err := other.Record(b.Context(), outcome); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			err := here.ask(b.Context(), func(ctx context.Context, f *file) error {
				return f.inTransaction(ctx, func() error { return f.refresh(ctx) })
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("commit one row", func(b *testing.B) { records(b, outcome) })
	b.Run("commit two rows", func(b *testing.B) { records(b, outcome, intent) })
	b.Run("commit ten rows", func(b *testing.B) {
		records(b, outcome, intent, outcome, intent, outcome, intent, outcome, intent, outcome, intent)
	})
	for _, kb := range []int{16, 256} {
		b.Run(fmt.Sprintf("commit a row of %d KB", kb), func(b *testing.B) {
			large := intent
			large.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", kb<<10) + `"}`)
			records(b, large)
		})
	}
	b.Run("commit two rows with an entry each, as a sequential call does", func(b *testing.B) {
		db := fresh(b)
		if err := db.Append(b.Context(), ledger.JournalEntry{Run: "r", Kind: ledger.Began, Owner: "x"}); err != nil {
			b.Fatal(err)
		}
		last, next := outcome, intent
		last.Journal, next.Journal = journaled("r", ledger.Replied), journaled("r", ledger.Sent)
		for b.Loop() {
			if err := db.Record(b.Context(), last, next); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a run with one call: two commits, its journal begun and removed", func(b *testing.B) {
		db := fresh(b)
		for i := 0; b.Loop(); i++ {
			if err := runWithCall(b.Context(), db, fmt.Sprint("run", i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	synced := intent
	synced.Durable = true
	b.Run("commit one row, synced", func(b *testing.B) { records(b, synced) })
	b.Run("commit two rows, synced", func(b *testing.B) { records(b, outcome, synced) })
}

// journaled are entries of a run's journal, about as large as those of small calls.
func journaled(run string, kinds ...ledger.EntryKind) (all []ledger.JournalEntry) {
	for _, kind := range kinds {
		e := ledger.JournalEntry{Run: run, Kind: kind, Owner: "x", Call: 1, Body: make([]byte, 300)}
		switch kind {
		case ledger.Began:
			e.Call, e.Configuration, e.Shared, e.Common = 0, "configuration", "tools", []byte("names of tools")
		case ledger.Ended:
			e.Call, e.Body = 0, nil
		}
		all = append(all, e)
	}
	return all
}

// runWithCall records a run with one call, as a bridge does whose runs are not kept.
func runWithCall(ctx context.Context, db *DB, run string) error {
	intent, outcome := call(1)
	started, ended := ledger.Record{Event: ledger.RunStarted, Script: "return await codemode.filesystem__read_file({})"}, ledger.Record{Event: ledger.RunEnded, Outcome: ledger.Done}
	intent.Journal, outcome.Journal, ended.Journal = journaled(run, ledger.Began, ledger.Sent), journaled(run, ledger.Replied), journaled(run, ledger.Ended)
	for _, r := range []*ledger.Record{&started, &intent, &outcome, &ended} {
		r.Run = run
	}
	return cmp.Or(db.Record(ctx, started, intent), db.Record(ctx, outcome, ended))
}

// BenchmarkJournal measures the two records of a call, alone and with the two
// entries of its run's journal.
func BenchmarkJournal(b *testing.B) {
	args, answer := make([]byte, 200), make([]byte, 1000)
	for _, journal := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%v", journal), func(b *testing.B) {
			db := open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db")})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				intent, outcome := call(i)
				if journal {
					if intent.Call == 1 {
						if err := db.Append(b.Context(), ledger.JournalEntry{Run: intent.Run, Kind: ledger.Began, Owner: "x"}); err != nil {
							b.Fatal(err)
						}
					}
					intent.Journal = []ledger.JournalEntry{{Run: intent.Run, Kind: ledger.Sent, Owner: "x", Call: intent.Call, Body: args}}
					outcome.Journal = []ledger.JournalEntry{{Run: intent.Run, Kind: ledger.Replied, Owner: "x", Call: intent.Call, Body: answer}}
				}
				for _, r := range []ledger.Record{intent, outcome} {
					if err := db.Record(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReadJournal measures an entry of a journal that is read.
func BenchmarkReadJournal(b *testing.B) {
	db := open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db")})
	const calls = 1000
	all := []ledger.JournalEntry{{Run: "r", Kind: ledger.Began, Owner: "x"}}
	for i := range calls {
		all = append(all, ledger.JournalEntry{Run: "r", Kind: ledger.Sent, Owner: "x", Call: i + 1, Body: make([]byte, 200)},
			ledger.JournalEntry{Run: "r", Kind: ledger.Replied, Owner: "x", Call: i + 1, Body: make([]byte, 1000)})
	}
	if err := db.Append(b.Context(), all...); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, entries, err := db.Read(b.Context(), "r"); err != nil || len(entries) != len(all) {
			b.Fatal(len(entries), err)
		}
	}
	b.ReportMetric(float64(b.N)*calls/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkVerify measures the verification of one row.
func BenchmarkVerify(b *testing.B) {
	db := open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db")})
	rows := benchRows()
	load(b, db, rows)
	b.ResetTimer()
	n := 0
	for n < b.N {
		report, err := db.Verify(b.Context(), nil)
		if err != nil || !report.Whole {
			b.Fatal(report, err)
		}
		n += rows
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/op")
}

// load writes rows quickly: many callers, and they settle.
func load(t testing.TB, db *DB, rows int) {
	var wait sync.WaitGroup
	const callers = 64
	for c := range callers {
		wait.Go(func() {
			for i := c; i < rows; i += callers {
				intent, outcome := call(i / 2)
				if i%2 == 1 {
					intent = outcome
				}
				if err := db.Record(t.Context(), intent); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	settled(t, db)
}

// settled waits until no row is left in recent.
func settled(t testing.TB, db *DB) {
	t.Helper()
	for {
		more := false
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) (err error) {
			more, err = f.compact(ctx, 10_000)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// BenchmarkQuery measures a page of 100 rows, newest first, by each index.
func BenchmarkQuery(b *testing.B) {
	db := open(b, Options{Path: filepath.Join(b.TempDir(), "audit.db")})
	load(b, db, benchRows())
	rare := ledger.Record{
		Event: ledger.Refusal, Run: "rare", Server: "rare", Tool: "tool", Disposition: "deny", Outcome: ledger.Refused, Risk: "critical", Approver: "ann",
	}
	for range 10 {
		if err := db.Record(b.Context(), rare); err != nil {
			b.Fatal(err)
		}
	}
	load(b, db, 1000)
	for name, q := range map[string]ledger.Query{
		"run":            {Runs: []string{"rare"}},
		"event":          {Events: []ledger.Event{ledger.Refusal}},
		"tool":           {Tool: "rare__*"},
		"disposition":    {Dispositions: []string{"deny"}},
		"outcome":        {Outcomes: []string{ledger.Refused}},
		"risk":           {Risks: []string{"critical"}},
		"approver":       {Approvers: []string{"ann"}},
		"since":          {Since: time.Now().Add(-time.Minute)},
		"until, oldest":  {Until: time.Now().Add(-time.Minute)},
		"common, oldest": {Outcomes: []string{ledger.Done}},
		"two":            {Outcomes: []string{ledger.Done}, Risks: []string{"critical", "low"}},
		"anything":       {},
	} {
		q.Limit, q.Newest = 100, !strings.HasSuffix(name, "oldest")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range db.Rows(b.Context(), q) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// benchRows is how many rows a benchmark reads: SQLSTORE_ROWS, or 100,000.
func benchRows() int {
	if n, err := strconv.Atoi(os.Getenv("SQLSTORE_ROWS")); err == nil {
		return n
	}
	return 100_000
}
