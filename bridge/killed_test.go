package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/bridge/storetest"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/worker"
)

// A run is killed at every commit, kept or not, which is between every two, in every
// store. What was approved and not sent is sent once when it goes on; what was sent and
// has no outcome in the log is unknown, and not sent again; and the log has it all.
func TestKilledAtEveryCommit(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		killedAtEveryCommit(t, func(*testing.T) storetest.Journaled { return memstore.New(nil) })
	})
	t.Run("SQLite", func(t *testing.T) {
		killedAtEveryCommit(t, func(t *testing.T) storetest.Journaled {
			db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "audit.db")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		})
	})
}

// killedAtEveryCommit is TestKilledAtEveryCommit for the stores that open makes.
func killedAtEveryCommit(t *testing.T, open func(t *testing.T) storetest.Journaled) {
	const code = `const r = {};
const go = async (tool, n) => { try { r[n] = JSON.parse(await codemode[tool]({n})).n } catch (e) { r[n] = e.name } };
await go('free__once', 1); await go('asks__once', 2); await go('free__again', 3);
await Promise.all([go('asks__once', 5), go('free__once', 6), go('free__once', 7)]);
await go('free__once', 9);
return r`
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for at, reached := 1, true; reached; at++ {
		reached = false
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d-%v", at, kept), func(t *testing.T) {
				w := newWorld(t)
				w.records, w.pool = open(t), pool
				if w.killed(t, code, at, kept) {
					reached = true
				}
			})
		}
		if !reached && at < 12 {
			t.Errorf("the run takes %d commits, so that this shows little", at-1)
		}
	}
}

// killed runs a script in a bridge that is killed at a commit, and goes on with it in
// another. It reports whether there was such a commit.
func (w *world) killed(t *testing.T, code string, at int, kept bool) bool {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go w.answerAll(ctx, t)
	l := newLife(at, kept)
	first, name := w.born(t, l)
	id, err := first.Start(t.Context(), "", code, nil, "ci")
	if err != nil && isClosed(l.ended) {
		return true // nobody has heard of the run
	}
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { st, ok := first.lookupState(id); return isClosed(l.ended) || ok && st.Over() })
	if !isClosed(l.ended) {
		return false
	}
	w.fleet.mu.Lock()
	w.gone[name] = true
	w.fleet.mu.Unlock()
	first.Close(0)
	before := w.sends(t)
	w.checkLog(t, id, false)

	b, _ := w.born(t, newLife(0, true))
	res, err := b.Resume(t.Context(), id, "the test", nil)
	if errors.Is(err, ErrNoRun) { // it had ended
		if n := len(before); n != 7 {
			t.Errorf("no run is left, and %v were made", before)
		}
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Result map[string]any }
	if err := json.Unmarshal(res.StructuredContent.(json.RawMessage), &answer); err != nil || len(answer.Result) != 7 {
		t.Fatalf("it answers %s, %v", res.StructuredContent, err)
	}
	unknown, after := 0, w.sends(t)
	for n, got := range answer.Result {
		switch {
		case got == "UnknownOutcomeError" && n != "3":
			if unknown++; after[n] != before[n] || after[n] > 1 {
				t.Errorf("call %s is unknown, and was sent %d times before the end and %d in all", n, before[n], after[n])
			}
		case fmt.Sprint(got) != n, after[n] != 1 && n != "3", after[n] < 1:
			t.Errorf("call %s got %v, and was sent %d times before the end and %d in all", n, got, before[n], after[n])
		}
	}
	if unknown > 3 { // as many as were under way at once
		t.Errorf("%d calls are unknown", unknown)
	}
	w.checkLog(t, id, true)
	return true
}

// sends counts what reached the servers, by the number in the arguments.
func (w *world) sends(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, c := range w.up.made() {
		_, n, ok := strings.Cut(c, `{"n":`)
		if !ok {
			t.Errorf("%s was sent", c)
		}
		all[strings.TrimSuffix(n, "}")]++
	}
	return all
}

// checkLog checks that the log is whole, begins the run first, and has an intent of each
// call that was sent, before its outcome; and each of these outcomes if the run is over.
func (w *world) checkLog(t *testing.T, id string, over bool) {
	t.Helper()
	report, err := w.records.Verify(t.Context(), nil)
	if err != nil || !report.Whole {
		t.Errorf("the log: %+v, %v", report, err)
	}
	rows, intents, numbers, outcomes := 0, map[string]int{}, map[int]string{}, map[int]int{}
	for row, err := range w.records.Rows(t.Context(), ledger.Query{Runs: []string{id}}) {
		if err != nil {
			t.Fatal(err)
		}
		r := row.Record
		if rows++; (rows == 1) != (r.Event == ledger.RunStarted) {
			t.Errorf("row %d of the run is %s", rows, r.Event)
		}
		switch r.Event {
		case ledger.Intent:
			var args struct{ N int }
			if err := json.Unmarshal(r.Args, &args); err != nil {
				t.Error(err)
			}
			numbers[r.Call] = fmt.Sprint(args.N)
			intents[numbers[r.Call]]++
		case ledger.Outcome:
			if outcomes[r.Call]++; numbers[r.Call] == "" {
				t.Errorf("call %d has an outcome and no intent", r.Call)
			}
		}
	}
	for n, times := range w.sends(t) {
		if intents[n] < times || intents[n] > 1 && n != "3" {
			t.Errorf("call %s was sent %d times and has %d intents", n, times, intents[n])
		}
	}
	for number, n := range numbers {
		if got := outcomes[number]; over && (got == 0 || got > 1 && n != "3") {
			t.Errorf("call %s has %d outcomes", n, got)
		}
	}
}
