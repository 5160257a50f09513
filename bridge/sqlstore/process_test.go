package sqlstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/sandbox/racing"
)

// The test binary is also the other process: this variable holds its part and
// its arguments.
const part = "SQLSTORE_TEST_PART"

var background = context.Background()

// parts are what a child can do. It ends with status 0 when all was as it
// should be.
var parts = map[string]func(args []string) error{
	"write": func(args []string) error { return writer(args[0], args[1], args[2]) },
	"work":  func(args []string) error { return worker(args[0], args[1]) },
	"enter": func(args []string) error { return enterer(args[0], args[1]) },
	"claim": func(args []string) error { return claimer(args[0], args[1]) },
	"use":   func(args []string) error { return user(args[0], args[1]) },
}

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(part), "\x1f"); args[0] != "" {
		if err := parts[args[0]](args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if masterLog.Path != "" {
			os.RemoveAll(filepath.Dir(masterLog.Path))
		}
		os.Exit(code)
	}))
}

// A masterLog is made by the first test that needs a copy of it.
var masterLog struct {
	sync.Once
	Options
}

// child returns a command that plays a part.
func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(racing.Program())
	cmd.Env = append(os.Environ(), part+"="+strings.Join(args, "\x1f"))
	return cmd
}

// writer records n times as run name.
func writer(path, name, n string) error {
	db, err := Open(background, Options{Path: path})
	if err != nil {
		return err
	}
	defer db.Close()
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	for i := range count {
		if err := db.Record(background, ledger.Record{Event: ledger.Intent, Run: name, Call: i + 1, Durable: i%7 == 0}); err != nil {
			return err
		}
	}
	return nil
}

// Processes that begin a store at the same time make one store, and one chain.
func TestManyProcesses(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "audit.db")}
	const n = 150
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wait.Go(func() {
			if out, err := child(t, "write", o.Path, name, strconv.Itoa(n)).CombinedOutput(); err != nil {
				t.Errorf("process %s: %v\n%s", name, err, out)
			}
		})
	}
	db := open(t, o)
	changed := db.Changed()
	<-changed // by one of the others
	for i := range n {
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "d", Call: i + 1}); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			settled(t, db)
		}
	}
	wait.Wait()
	calls := make(map[string]int)
	for i, row := range all(t, db) {
		if row.Seq != int64(i+1) {
			t.Fatalf("row %d is number %d", i+1, row.Seq)
		}
		if calls[row.Record.Run]++; row.Record.Call != calls[row.Record.Run] {
			t.Fatalf("process %s: call %d is its record %d", row.Record.Run, row.Record.Call, calls[row.Record.Run])
		}
	}
	if diff := cmp.Diff(map[string]int{"a": n, "b": n, "c": n, "d": n}, calls); diff != "" {
		t.Errorf("rows by process (-want +got):\n%s", diff)
	}
	if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

const workers = 4

// worker makes calls until it is killed: intent, effect, outcome. The effect
// is a line in a file. Now and then the oldest rows are pruned.
func worker(path, effects string) error {
	db, err := Open(background, Options{Path: path, CheckpointFile: path + ".checkpoints"})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(effects, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range workers {
		go func() {
			run := fmt.Sprintf("%d-%d", os.Getpid(), w)
			for i := 1; ; i++ {
				r := ledger.Record{Event: ledger.Intent, Run: run, Call: i, Durable: i%5 == 0}
				if err := db.Record(background, r); err != nil {
					failed <- err
				}
				if _, err := fmt.Fprintf(out, "%s %d\n", run, i); err != nil {
					failed <- err
				}
				r.Event, r.Outcome = ledger.Outcome, ledger.Done
				if err := db.Record(background, r); err != nil {
					failed <- err
				}
				if w == 0 && i%20 == 0 {
					if _, err := db.Prune(background, time.Now().Add(-20*time.Millisecond)); err != nil {
						failed <- err
					}
				}
			}
		}()
	}
	return <-failed
}

// TestKilled kills a process that makes calls, at a random moment, again and
// again on one log: every effect has its intent, and the log is whole.
func TestKilled(t *testing.T) { killed(t, 30) }

func killed(t *testing.T, times int) {
	dir := t.TempDir()
	path, effects := filepath.Join(dir, "audit.db"), filepath.Join(dir, "effects")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	intents, outcomes := make(map[string]bool), make(map[string]bool)
	seen, checked := int64(0), 0
	for i := range times {
		before := size(t, effects)
		cmd := child(t, "work", path, effects)
		var said strings.Builder
		cmd.Stdout = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for i%2 == 1 && size(t, effects) == before && len(ended) == 0 { // the others may die before they have begun
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(250)) * time.Millisecond) // the moment is the test
		cmd.Process.Kill()
		if err := <-ended; err == nil || said.Len() > 0 {
			t.Fatalf("kill %d: the process ended by itself: %v %s", i, err, said.String())
		}
		if i%10 != 9 && i != times-1 {
			continue
		}
		var more int
		seen, more = examineKilled(t, path, effects, seen, intents, outcomes)
		checked += more
	}
	if checked == 0 {
		t.Error("no effect was checked")
	}
	open := 0
	for call := range intents {
		if !outcomes[call] {
			open++
		}
	}
	t.Logf("%d calls, %d without an outcome, %d rows", len(intents), open, seen)
	if open > times*workers {
		t.Errorf("%d calls are without an outcome after %d kills of %d workers", open, times, workers)
	}
}

// examineKilled checks what was left behind and adds the calls that are in
// the log after row seen. What was pruned before it was seen, a Pruned row
// accounts for. It returns the last row and how many effects it could check.
func examineKilled(t *testing.T, path, effects string, seen int64, intents, outcomes map[string]bool) (int64, int) {
	t.Helper()
	db := open(t, Options{Path: path, CheckpointFile: path + ".checkpoints"})
	defer db.Close()
	report, err := db.Verify(t.Context(), nil)
	if err != nil || !report.Whole || db.Err() != nil {
		t.Fatalf("verify: %+v, %v; the store says %v", report, err, db.Err())
	}
	earliest := make(map[string]int) // of the calls of a run that are still there
	for row, err := range db.Rows(t.Context(), ledger.Query{After: seen}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = row.Seq
		call := fmt.Sprintf("%s %d", row.Record.Run, row.Record.Call)
		switch row.Record.Event {
		case ledger.Intent:
			intents[call] = true
			if earliest[row.Record.Run] == 0 {
				earliest[row.Record.Run] = row.Record.Call
			}
		case ledger.Outcome:
			outcomes[call] = true
		case ledger.Pruned:
			var gone ledger.Removal
			if err := json.Unmarshal(row.Record.Detail, &gone); err != nil || gone.Rows == 0 {
				t.Errorf("a pruned row says %s, %v", row.Record.Detail, err)
			}
		}
	}
	file, err := os.Open(effects)
	if errors.Is(err, os.ErrNotExist) {
		return seen, 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	checked := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		run, number, _ := strings.Cut(lines.Text(), " ")
		call, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("effect %q: %v", lines.Text(), err)
		}
		first, there := earliest[run]
		if !there || call < first { // of an earlier look, or pruned
			continue
		}
		if checked++; !intents[lines.Text()] {
			t.Errorf("effect %s has no intent", lines.Text())
		}
	}
	return seen, checked
}

// size is the length of a file, 0 where there is none.
func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A removal that was interrupted is gone on with.
func TestInterruptedPrune(t *testing.T) {
	o := place(t, 0)
	o.CheckpointFile = "" // a checkpoint asks for the time as well
	clock := began
	o.Clock = func() time.Time { clock = clock.Add(time.Second); return clock }
	db := open(t, o)
	for i := range 2500 {
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Call: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, db)
	before := began.Add(2301 * time.Second)
	var gone ledger.Removal
	if err := db.ask(t.Context(), func(ctx context.Context, f *file) (err error) {
		gone, err = f.older(ctx, before)
		return err
	}); err != nil || gone.Rows != 2300 {
		t.Fatalf("%+v, %v", gone, err)
	}
	if err := db.Record(t.Context(), gone.Record()); err != nil {
		t.Fatal(err)
	}
	for step := range 2 { // the process ends after the record, then after a part
		if step == 1 {
			if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
				_, err := f.remove(ctx, gone.Last)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, db)
		db = open(t, o)
		if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole {
			t.Fatalf("after step %d: %+v, %v", step, report, err)
		}
	}
	if n, err := db.Prune(t.Context(), before); n != 1300 || err != nil {
		t.Errorf("pruned %d, %v; want the other 1300", n, err)
	}
	if report, err := db.Verify(t.Context(), nil); err != nil || !report.Whole || report.First != 2301 {
		t.Errorf("afterwards: %+v, %v", report, err)
	}
}

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// Rows move to where they are found quickly when nothing else is to be done.
func TestSettling(t *testing.T) {
	db := open(t, place(t, 0))
	put(t, db, 3*compactRows)
	f, err := db.reading()
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		var left int
		if err := f.read.QueryRowContext(t.Context(), "SELECT count(*) FROM recent").Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	if got := all(t, db); len(got) != 3*compactRows {
		t.Errorf("%d rows", len(got))
	}
}

// A commit syncs the disk where one of its records asks for it.
func TestSynchronous(t *testing.T) {
	o := place(t, 0)
	for _, row := range []struct {
		all, durable bool
		want         int64 // as PRAGMA synchronous numbers them: 1 is NORMAL, 2 is FULL
	}{{false, false, 1}, {false, true, 2}, {true, false, 2}} {
		o.AllDurable = row.all
		db := open(t, o)
		for _, durable := range []bool{!row.durable, row.durable} {
			if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Durable: durable}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
			level, err := f.number(ctx, "PRAGMA synchronous")
			if level != row.want {
				t.Errorf("%+v: synchronous is %d", row, level)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		closeStore(t, db)
	}
}
