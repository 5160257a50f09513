package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/ledger"
)

// Journals is the suite that every Journaled must pass. open returns a new, empty
// store, and a function that returns another view of it, as a second process would
// have it; it has both closed when the test ends.
func Journals(t *testing.T, open func(t *testing.T) (store Journaled, again func(t *testing.T) Journaled)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, a, b Journaled)
	}{
		{"entries come back as they were", journalComesBack},
		{"a run that ended is forgotten", endedIsForgotten},
		{"an end removes what comes with it", endRemovesTheRest},
		{"a finished run is kept", finishedIsKept},
		{"what is refused is not kept", refusedEntries},
		{"a refused entry refuses its record alone", refusedRecords},
		{"all entries or none", allOrNone}, {"several records, all or none", together}, {"several records, side by side", adjacent},
		{"a grant is used with the record of its call", usesAreCounted},
		{"of many uses at a time as many as may be", usesAtATime},
		{"shared bytes are kept once for all", sharedBytes},
		{"a run is changed", runIsChanged},
		{"one acquires a run", oneAcquires},
		{"who lost a run writes nothing", fenced},
		{"what is requested of an owner", requested},
		{"a late owner writes nothing", lateOwner},
		{"runs are listed, the oldest first", runsAreListed},
		{"dropping", dropping},
		{"many runs at a time", manyRuns},
		{"changes of runs are told", journalChangesAreTold},
		{"given up", journalGivenUp},
		{"closed", journalClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, again := open(t)
			test.run(t, store, again(t))
		})
	}
}

func journalComesBack(t *testing.T, a, b Journaled) {
	first := begun("r", "x")
	first.Shared, first.Common = "tools-1", []byte(strings.Repeat("tools ", 10_000))
	large := settled("r", "x", 2)
	large.Body = []byte(strings.Repeat("0123456789", 500_000))
	empty := sent("r", "x", 3)
	empty.Body = nil
	must(t, a.Append(t.Context(), first))
	must(t, a.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "r", Journal: []ledger.JournalEntry{sent("r", "x", 1)}}))
	must(t, a.Append(t.Context(), sent("r", "x", 2), large))
	must(t, a.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Run: "r", Durable: true, Journal: []ledger.JournalEntry{settled("r", "x", 1), empty}}))
	want := []ledger.JournalEntry{first, sent("r", "x", 1), sent("r", "x", 2), large, settled("r", "x", 1), empty}
	size := int64(0)
	for i := range want {
		size += int64(len(want[i].Body))
		want[i].Owner, want[i].Configuration, want[i].Until = "", "", time.Time{}
	}
	for name, s := range map[string]Journaled{"its writer": a, "another": b} {
		k, got := journalOf(t, s, "r")
		if want := (ledger.JournaledRun{Run: "r", Owner: "x", Lease: 1, State: ledger.Live, Configuration: "conf", Until: until.UTC(), Bytes: size}); k != want {
			t.Errorf("%s reads %+v, want %+v", name, k, want)
		}
		for i := range got {
			if len(got[i].Body) == 0 {
				got[i].Body = nil
			}
		}
		if diff := cmp.Diff(want, got, wholeBytes); diff != "" {
			t.Errorf("%s does not read the entries that were written (-want +got):\n%s", name, diff)
		}
	}
	if got := rows(t, b, ledger.Query{Runs: []string{"r"}}); len(got) != 2 || got[0].Record.Journal != nil {
		t.Errorf("%d records", len(got))
	}
	whole(t, b, nil)
}

func refusedEntries(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x")))
	for _, row := range []struct {
		name  string
		entry ledger.JournalEntry
		want  error // nil is any
	}{
		{"of no journal", sent("none", "x", 1), ledger.ErrNoJournal},
		{"settled of no journal", settled("none", "x", 1), ledger.ErrNoJournal},
		{"of another's run", sent("r", "y", 1), ledger.ErrNotOwner},
		{"an end of another's run", ledger.JournalEntry{Run: "r", Kind: ledger.Ended, Owner: "y"}, ledger.ErrNotOwner},
		{"a second beginning", begun("r", "x"), nil},
		{"a second beginning by another", begun("r", "y"), nil},
		{"without a run", sent("", "x", 1), nil},
		{"without an owner", sent("r", "", 1), nil},
		{"of no kind", ledger.JournalEntry{Run: "r", Owner: "x", Kind: "paused"}, nil},
		{"shared bytes in the middle", ledger.JournalEntry{Run: "r", Owner: "x", Kind: ledger.Sent, Shared: "s"}, nil},
		{"shared bytes without a name", ledger.JournalEntry{Run: "q", Owner: "x", Kind: ledger.Began, Common: []byte("c")}, nil},
	} {
		for _, s := range []Journaled{a, b} {
			if err := s.Append(t.Context(), row.entry); err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("appending an entry %s: %v", row.name, err)
			}
			if err := s.Record(t.Context(), ledger.Record{Event: ledger.Intent, Journal: []ledger.JournalEntry{row.entry}}); err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("recording with an entry %s: %v", row.name, err)
			}
		}
	}
	hasEntries(t, b, "r", "began 0")
	if diff := cmp.Diff([]string{"r"}, runsOf(t, b)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if got := rows(t, a, ledger.Query{}); len(got) != 0 {
		t.Errorf("%d records were kept without their entries", len(got))
	}
	must(t, a.Err())
	must(t, a.Append(t.Context())) // nothing is no error
	must(t, a.Append(t.Context(), ledger.JournalEntry{Run: "none", Kind: ledger.Ended, Owner: "x"}))
	must(t, a.Record(t.Context(), ledger.Record{Event: ledger.RunEnded, Journal: []ledger.JournalEntry{{Run: "none", Kind: ledger.Ended, Owner: "x", Until: until}}}))
	hasNone(t, b, "none")
}

// refusedRecords: of many records at a time exactly those are refused whose
// entries are.
func refusedRecords(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("mine", "x"), begun("lost", "y")))
	const n = 40
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			s, r := a, ledger.Record{Event: ledger.Intent, Call: i + 1}
			if i%8 == 7 {
				s = b
			}
			switch i % 4 {
			case 0:
				r.Run = "plain"
			case 1:
				r.Run, r.Journal = "mine", []ledger.JournalEntry{sent("mine", "x", i)}
			case 2:
				r.Run, r.Journal = "lost", []ledger.JournalEntry{sent("lost", "x", i)}
			case 3:
				r.Run, r.Journal = "half", []ledger.JournalEntry{sent("mine", "x", i), sent("lost", "x", i)}
			}
			if err := s.Record(t.Context(), r); errors.Is(err, ledger.ErrNotOwner) != (i%4 >= 2) || err != nil && i%4 < 2 {
				t.Errorf("recording in run %s: %v", r.Run, err)
			}
		})
	}
	wait.Wait()
	for run, want := range map[string]int{"plain": n / 4, "mine": n / 4, "lost": 0, "half": 0} {
		if got := len(rows(t, b, ledger.Query{Runs: []string{run}})); got != want {
			t.Errorf("run %s has %d records, want %d", run, got, want)
		}
	}
	_, mine := journalOf(t, b, "mine")
	recorded := rows(t, b, ledger.Query{Runs: []string{"mine"}})
	for i, e := range mine[1:] { // in the order of their records
		if e.Call != recorded[i].Record.Call-1 {
			t.Errorf("entry %d of the run is call %d, its record %d", i+1, e.Call, recorded[i].Record.Call)
		}
	}
	if len(mine) != 1+n/4 {
		t.Errorf("%d entries", len(mine))
	}
	hasEntries(t, a, "lost", "began 0")
	whole(t, b, nil)
}

func allOrNone(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1)))
	for name, entries := range map[string][]ledger.JournalEntry{
		"the last is refused":        {settled("r", "x", 1), sent("r", "x", 2), sent("r", "y", 3)},
		"a beginning before it":      {begun("new", "x"), sent("new", "x", 1), sent("none", "x", 1)},
		"an end before it":           {{Run: "r", Kind: ledger.Ended, Owner: "x"}, sent("r", "x", 2)},
		"an end and a new beginning": {{Run: "r", Kind: ledger.Ended, Owner: "x"}, begun("r", "y"), sent("r", "x", 2)},
		"a finish before it":         {{Run: "r", Kind: ledger.Ended, Owner: "x", Until: until}, sent("r", "x", 2)},
	} {
		if err := a.Append(t.Context(), entries...); err == nil {
			t.Errorf("%s: all were kept", name)
		}
		hasNone(t, b, "new")
		hasEntries(t, a, "r", "began 0", "sent 1")
		if k, _ := journalOf(t, b, "r"); k.State != ledger.Live || k.Owner != "x" {
			t.Errorf("%s: the run is %+v", name, k)
		}
	}
	must(t, a.Append(t.Context(), settled("r", "x", 1))) // and it goes on where it was
	hasEntries(t, b, "r", "began 0", "sent 1", "settled 1")
	must(t, a.Append(t.Context(), begun("new", "x"), sent("new", "x", 1), ledger.JournalEntry{Run: "new", Kind: ledger.Ended, Owner: "x"}, begun("new", "y")))
	hasEntries(t, b, "new", "began 0")
}

func sharedBytes(t *testing.T, a, b Journaled) {
	share := func(run, name, bytes string) ledger.JournalEntry {
		e := begun(run, "x")
		e.Shared, e.Common = name, []byte(bytes)
		return e
	}
	must(t, a.Append(t.Context(), share("r1", "s", "tools")))
	must(t, b.Append(t.Context(), share("r2", "s", "tools")))
	must(t, a.Append(t.Context(), share("r3", "t", "")))
	if err := b.Append(t.Context(), share("r4", "s", "other tools")); err == nil {
		t.Error("one name stands for two things")
	}
	common := func(s Journaled, run, name, want string) {
		t.Helper()
		if _, entries := journalOf(t, s, run); entries[0].Shared != name || string(entries[0].Common) != want {
			t.Errorf("run %s shares %q as %q", run, entries[0].Common, entries[0].Shared)
		}
	}
	must(t, a.Drop(t.Context(), "r1"))
	common(a, "r2", "s", "tools")
	common(b, "r3", "t", "")
	must(t, b.Drop(t.Context(), "r2"))
	must(t, a.Append(t.Context(), share("r5", "s", "tools")))
	common(b, "r5", "s", "tools")
}

func runIsChanged(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1)))
	before, _, err := a.Read(t.Context(), "r")
	must(t, err)
	later := until.Add(time.Hour)
	got, err := b.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error {
		if *k != before {
			t.Errorf("to be changed is %+v, want %+v", *k, before)
		}
		*k = ledger.JournaledRun{Run: "another", Configuration: "another", Owner: "y", HandoverRequestedBy: "z", State: ledger.Paused, Until: later, Bytes: 1}
		return nil
	})
	must(t, err)
	want := ledger.JournaledRun{Run: "r", Owner: "y", Lease: 2, HandoverRequestedBy: "z", State: ledger.Paused, Configuration: "conf", Began: before.Began, Until: later.UTC(), Bytes: before.Bytes}
	if got != want {
		t.Errorf("changed to %+v, want %+v", got, want)
	}
	no := errors.New("no")
	if got, err := a.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Owner = "z"; return no }); err != no || got != want {
		t.Errorf("a change that was given up: %+v, %v", got, err)
	}
	if got, err := a.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.State = "gone"; return nil }); err == nil || got != want {
		t.Errorf("a state that there is not: %+v, %v", got, err)
	}
	if _, err := a.ChangeRun(t.Context(), "none", func(*ledger.JournaledRun) error { t.Error("a run that is not there was changed"); return nil }); !errors.Is(err, ledger.ErrNoJournal) {
		t.Errorf("changing a run that is not there: %v", err)
	}
	for _, s := range []Journaled{a, b} {
		if got, _, err := s.Read(t.Context(), "r"); err != nil || got != want {
			t.Errorf("read as %+v, %v; want %+v", got, err, want)
		}
	}
	hasEntries(t, a, "r", "began 0", "sent 1")
	must(t, a.Err())
	if got, err := a.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Until = time.Time{}; return nil }); err != nil || !got.Until.IsZero() {
		t.Errorf("without an end it is %+v, %v", got, err)
	}
	if got, _, err := b.Read(t.Context(), "r"); err != nil || !got.Until.IsZero() {
		t.Errorf("without an end it is read as %+v, %v", got, err)
	}
}

// oneAcquires: of many who want a run, in two processes, one gets it.
func oneAcquires(t *testing.T, a, b Journaled) {
	taken := errors.New("it is taken")
	for round := range 10 {
		run := fmt.Sprint("r", round)
		must(t, a.Append(t.Context(), begun(run, "first")))
		_, err := a.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error { k.Release(); return nil })
		must(t, err)
		var won atomic.Int32
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				s, me := a, fmt.Sprint("bridge ", i)
				if i%2 == 1 {
					s = b
				}
				k, err := s.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error {
					if k.Owner != "" {
						return taken
					}
					k.Acquire(me)
					return nil
				})
				switch {
				case err == nil && k.Owner == me:
					won.Add(1)
					if err := s.Append(t.Context(), sent(run, me, 1)); err != nil {
						t.Errorf("the new owner writes: %v", err)
					}
				case err != taken:
					t.Errorf("acquiring the run: %+v, %v", k, err)
				default:
					if err := s.Append(t.Context(), sent(run, me, 2)); !errors.Is(err, ledger.ErrNotOwner) {
						t.Errorf("who did not get the run writes: %v", err)
					}
				}
			})
		}
		wait.Wait()
		if won.Load() != 1 {
			t.Errorf("%d have acquired the run", won.Load())
		}
		hasEntries(t, b, run, "began 0", "sent 1")
	}
}

// fenced: whatever a process remembers of a run, another's lease counts from
// when it returned.
func fenced(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "a"), sent("r", "a", 1)))
	want := []string{"began 0", "sent 1"}
	stores, owner := map[string]Journaled{"a": a, "b": b}, "a"
	for call := 2; call < 12; call++ {
		next := map[string]string{"a": "b", "b": "a"}[owner]
		_, err := stores[next].ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Owner = next; return nil })
		must(t, err)
		if err := stores[owner].Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: owner, Journal: []ledger.JournalEntry{sent("r", owner, call)}}); !errors.Is(err, ledger.ErrNotOwner) {
			t.Fatalf("the owner before writes call %d: %v", call, err)
		}
		must(t, stores[next].Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: next, Journal: []ledger.JournalEntry{sent("r", next, call)}}))
		want = append(want, fmt.Sprint("sent ", call))
		owner = next
	}
	hasEntries(t, a, "r", want...)
	must(t, b.Drop(t.Context(), "r"))
	if err := a.Append(t.Context(), sent("r", "a", 20)); !errors.Is(err, ledger.ErrNoJournal) {
		t.Errorf("writing to a run that another dropped: %v", err)
	}
	must(t, b.Append(t.Context(), begun("r", "b"))) // which may have the same place
	if err := a.Append(t.Context(), sent("r", "a", 20)); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("writing to a run that another began: %v", err)
	}
	hasEntries(t, a, "r", "began 0")
}

// lateOwner: a bridge that acquired a run again writes nothing under the lease
// that it had before, and no change takes a number back.
func lateOwner(t *testing.T, a, b Journaled) {
	under := func(lease int64, call int) ledger.JournalEntry {
		e := sent("r", "x", call)
		e.Lease = lease
		return e
	}
	must(t, a.Append(t.Context(), begun("r", "x"), under(1, 1)))
	for _, bridge := range []string{"y", "x", "x"} {
		_, err := b.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Release(); return nil })
		must(t, err)
		_, err = b.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Acquire(bridge); return nil })
		must(t, err)
	}
	for lease := range int64(4) {
		if lease == 0 {
			continue // leaves the number out
		}
		for _, s := range []Journaled{a, b} {
			if err := s.Append(t.Context(), under(lease, 2)); !errors.Is(err, ledger.ErrNotOwner) {
				t.Errorf("writing under lease %d: %v", lease, err)
			}
		}
	}
	k, err := a.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Lease = 1; return nil })
	if err != nil || k.Lease != 4 {
		t.Errorf("after three bridges its lease is %d, %v", k.Lease, err)
	}
	must(t, a.Append(t.Context(), under(4, 3), under(0, 4)))
	hasEntries(t, b, "r", "began 0", "sent 1", "sent 3", "sent 4")
	must(t, b.Drop(t.Context(), "r"))
	must(t, a.Append(t.Context(), begun("r", "x"))) // which may have the same place
	if k, _ := journalOf(t, b, "r"); k.Lease != 1 {
		t.Errorf("a run that begins has lease %d", k.Lease)
	}
}

func requested(t *testing.T, a, b Journaled) {
	for i := range 4 {
		must(t, a.Append(t.Context(), begun(fmt.Sprint("r", i), "x")))
	}
	must(t, a.Append(t.Context(), begun("other", "y")))
	request := func(run, handover, cancel string) {
		t.Helper()
		_, err := b.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error {
			k.HandoverRequestedBy, k.CancelRequestedBy = handover, cancel
			return nil
		})
		must(t, err)
	}
	request("r3", "z", "")
	request("r3", "z", "bob") // who ends it has the last word
	request("r1", "bridge one", "")
	request("r2", "", "bob")
	request("other", "", "bob")
	request("r2", "", "")
	all, err := a.LeaseRequests(t.Context(), "x")
	must(t, err)
	lease := ledger.JournaledRun{Owner: "x", Lease: 1, State: ledger.Live, Configuration: "conf", Until: until.UTC(), Bytes: int64(len("script of r1"))}
	handover, cancel := lease, lease
	handover.Run, handover.HandoverRequestedBy = "r1", "bridge one"
	cancel.Run, cancel.CancelRequestedBy = "r3", "bob"
	if diff := cmp.Diff([]ledger.JournaledRun{handover, cancel}, all, cmpopts.IgnoreFields(ledger.JournaledRun{}, "Began")); diff != "" {
		t.Errorf("requested of x (-want +got):\n%s", diff)
	}
	if all, err := b.LeaseRequests(t.Context(), "nobody"); err != nil || len(all) != 0 {
		t.Errorf("requested of nobody: %+v, %v", all, err)
	}
}

func runsAreListed(t *testing.T, a, b Journaled) {
	if got := runsOf(t, b); len(got) != 0 {
		t.Errorf("runs of an empty store: %q", got)
	}
	for _, run := range []string{"c", "a", "b"} {
		must(t, a.Append(t.Context(), begun(run, "x"), sent(run, "x", 1)))
	}
	must(t, a.Append(t.Context(), sent("c", "x", 2)))
	must(t, b.Drop(t.Context(), "a"))
	must(t, b.Append(t.Context(), begun("a", "y")))
	if diff := cmp.Diff([]string{"c", "b", "a"}, runsOf(t, a)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	all, err := b.Runs(t.Context())
	must(t, err)
	for _, k := range all {
		if one, _, err := a.Read(t.Context(), k.Run); err != nil || one != k {
			t.Errorf("listed as %+v, read as %+v, %v", k, one, err)
		}
	}
}

func dropping(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1)))
	must(t, b.Drop(t.Context(), "r"))
	hasNone(t, a, "r")
	must(t, a.Drop(t.Context(), "r"))
	must(t, a.Drop(t.Context(), "none"))
}

// manyRuns: each run has the entries of its own goroutine, in its order.
func manyRuns(t *testing.T, a, b Journaled) {
	const runs, calls = 8, 30
	var wait sync.WaitGroup
	for i := range runs {
		wait.Go(func() {
			run, s := fmt.Sprint("r", i), a
			if i%2 == 1 {
				s = b
			}
			first := begun(run, "x")
			first.Shared, first.Common = "all", []byte("of them")
			if err := s.Append(t.Context(), first); err != nil {
				t.Error(err)
			}
			for call := 1; call <= calls; call++ {
				intent := ledger.Record{Event: ledger.Intent, Run: run, Call: call, Journal: []ledger.JournalEntry{sent(run, "x", call)}, Durable: call == calls}
				if err := s.Record(t.Context(), intent); err != nil {
					t.Error(err)
				}
				if err := s.Append(t.Context(), settled(run, "x", call)); err != nil {
					t.Error(err)
				}
			}
			if i >= runs/2 {
				if err := s.Append(t.Context(), ledger.JournalEntry{Run: run, Kind: ledger.Ended, Owner: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	want := []string{"began 0"}
	for call := 1; call <= calls; call++ {
		want = append(want, fmt.Sprint("sent ", call), fmt.Sprint("settled ", call))
	}
	for i := range runs {
		run := fmt.Sprint("r", i)
		if i >= runs/2 {
			hasNone(t, a, run)
			continue
		}
		hasEntries(t, a, run, want...)
	}
	whole(t, a, nil)
}

func journalChangesAreTold(t *testing.T, a, b Journaled) {
	for _, step := range []func(s Journaled) error{
		func(s Journaled) error { return s.Append(t.Context(), begun("r", "x")) },
		func(s Journaled) error {
			_, err := s.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.CancelRequestedBy = "bob"; return nil })
			return err
		},
		func(s Journaled) error { return s.Drop(t.Context(), "r") },
	} {
		here, there := a.Changed(), b.Changed()
		must(t, step(a))
		<-here
		<-there
	}
}

func journalGivenUp(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	change := func(*ledger.JournaledRun) error { t.Error("a run was changed"); return nil }
	_, _, read := a.Read(ctx, "r")
	_, runs := a.Runs(ctx)
	_, requests := a.LeaseRequests(ctx, "x")
	_, changed := a.ChangeRun(ctx, "r", change)
	for what, err := range map[string]error{
		"Append": a.Append(ctx, sent("r", "x", 1)), "Read": read, "Runs": runs, "LeaseRequests": requests, "ChangeRun": changed, "Drop": a.Drop(ctx, "r"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	hasEntries(t, b, "r", "began 0")
	must(t, a.Err())
}

func journalClosed(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x")))
	must(t, a.Close())
	_, changed := a.ChangeRun(t.Context(), "r", func(*ledger.JournaledRun) error { return nil })
	for what, err := range map[string]error{"Append": a.Append(t.Context(), sent("r", "x", 1)), "ChangeRun": changed, "Drop": a.Drop(t.Context(), "r")} {
		if !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s of a closed store: %v", what, err)
		}
	}
	hasEntries(t, b, "r", "began 0")
}

// use is the record of a call that a grant allows, which it may do so often.
func use(grant string, call, uses int) ledger.Record {
	return ledger.Record{Event: ledger.Intent, Run: "r", Call: call, Grant: grant, GrantUses: uses, Durable: true}
}

// usesAreCounted: a record and the use of its grant are both there or neither.
func usesAreCounted(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x")))
	without := use("g1", 1, 2)
	without.Journal = []ledger.JournalEntry{sent("r", "somebody else", 1)}
	if err := a.Record(t.Context(), without); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("an entry that is not the owner's: %v", err)
	}
	with := use("g1", 1, 2)
	with.Journal = []ledger.JournalEntry{sent("r", "x", 1)}
	must(t, a.Record(t.Context(), with))
	must(t, b.Record(t.Context(), use("g1", 2, 2)))
	third := use("g1", 3, 2)
	third.Journal = []ledger.JournalEntry{sent("r", "x", 3)}
	for _, s := range []Journaled{a, b} {
		if err := s.Record(t.Context(), third); !errors.Is(err, ledger.ErrUsedUp) {
			t.Errorf("a third use of two: %v", err)
		}
		if err := s.Err(); err != nil {
			t.Errorf("a grant that is used up makes the store unavailable: %v", err)
		}
	}
	must(t, b.Record(t.Context(), use("g2", 4, 1)))
	must(t, b.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Run: "r", Call: 4, Grant: "g2"})) // names it, and is no use
	hasEntries(t, a, "r", "began 0", "sent 1")
	var calls []int
	for _, row := range rows(t, b, ledger.Query{Events: []ledger.Event{ledger.Intent}}) {
		calls = append(calls, row.Record.Call)
	}
	if diff := cmp.Diff([]int{1, 2, 4}, calls); diff != "" {
		t.Errorf("recorded are (-want +got):\n%s", diff)
	}
}

// usesAtATime: a grant is used no more often than it may be, whoever uses it.
func usesAtATime(t *testing.T, a, b Journaled) {
	var done, refused atomic.Int32
	var wait sync.WaitGroup
	for i := range 24 {
		s := []Journaled{a, b}[i%2]
		wait.Go(func() {
			switch err := s.Record(t.Context(), use("g", i+1, 5)); {
			case err == nil:
				done.Add(1)
			case errors.Is(err, ledger.ErrUsedUp):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := len(rows(t, a, ledger.Query{})); done.Load() != 5 || refused.Load() != 19 || got != 5 {
		t.Errorf("%d uses are recorded, %d refused, and %d rows are there", done.Load(), refused.Load(), got)
	}
}
