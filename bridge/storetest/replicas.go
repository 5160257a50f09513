package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replica"
)

// Replicas is the suite that every replica.Table must pass. open returns an empty one,
// and has it closed when the test ends.
func Replicas(t *testing.T, open func(t *testing.T) replica.Table) {
	table := open(t)
	renew := func(name string, term time.Duration, want bool) {
		t.Helper()
		lapsed, err := table.Renew(t.Context(), replica.Replica{Name: name, Machine: "m", Version: "v1", Address: "http://" + name}, term)
		if err != nil || lapsed != want {
			t.Errorf("%s lapsed: %t, %v, want %t", name, lapsed, err, want)
		}
	}
	has := func(want ...string) {
		t.Helper()
		all, err := table.List(t.Context())
		var got []string
		for _, one := range all {
			name := one.Name
			if one.Gone {
				name += " gone"
			}
			if got = append(got, name); one.Machine != "m" || one.Version != "v1" || one.Address != "http://"+one.Name || one.Since.IsZero() {
				t.Errorf("it has %+v", one)
			}
			if !one.Gone && !one.Until.After(one.Since) {
				t.Errorf("%s is alive from %v until %v", one.Name, one.Since, one.Until)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("it has %q, %v, want %q", got, err, want)
		}
	}
	has()
	renew("a", time.Hour, true) // it was not alive before
	renew("b", time.Hour, true)
	has("a", "b")
	renew("a", time.Hour, false)
	renew("b", -time.Second, false)
	has("a", "b gone")
	renew("b", time.Hour, true)
	has("a", "b")
	must(t, table.Leave(t.Context(), "a"))
	must(t, table.Leave(t.Context(), "nobody"))
	has("b")
	renew("a", time.Hour, true)
	has("b", "a")
}

// Fenced is the suite of a store that has a table of replicas: no bridge takes a run from
// one that is alive, and one that is not announces no call. again returns another view of
// the same store.
func Fenced(t *testing.T, table replica.Table, a Journaled, again func(t *testing.T) Journaled) {
	renew := func(name string, term time.Duration) {
		t.Helper()
		_, err := table.Renew(t.Context(), replica.Replica{Name: name}, term)
		must(t, err)
	}
	take := func(s Journaled, run, by string) error {
		_, err := s.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error {
			if k.Owner == by {
				return errors.New("it is mine")
			}
			k.Acquire(by)
			return nil
		})
		return err
	}
	intent := func(run, by string, lease int64, call int) error {
		e := sent(run, by, call)
		e.Lease = lease
		return a.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: run, Call: call, Journal: []ledger.JournalEntry{e}})
	}
	renew("x", time.Hour)
	for _, run := range []string{"r", "s", "u"} {
		must(t, a.Append(t.Context(), begun(run, "x")))
	}
	if err := take(a, "r", "y"); !errors.Is(err, ledger.ErrOwnerAlive) {
		t.Errorf("a run is taken from a bridge that is alive: %v", err)
	}
	must(t, intent("r", "x", 1, 1))
	renew("x", -time.Second)
	err := intent("r", "x", 1, 2)
	if !errors.Is(err, replica.ErrLapsed) || !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a bridge that is not alive announces a call: %v", err)
	}
	outcome := settled("r", "x", 1)
	must(t, a.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Run: "r", Call: 1, Journal: []ledger.JournalEntry{outcome}})) // it was sent before

	// Back in time: nobody has taken the run.
	renew("x", time.Hour)
	must(t, intent("r", "x", 1, 2))

	renew("x", -time.Second)
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for _, by := range []string{"y", "z", "v"} {
		s := again(t)
		all.Go(func() {
			_, err := s.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error {
				if k.Owner != "x" {
					return errors.New("taken")
				}
				k.Acquire(by)
				return nil
			})
			if err == nil {
				mu.Lock()
				won = append(won, by)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%q have acquired the run", won)
	}
	renew("x", time.Hour)
	if err := intent("r", "x", 1, 3); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("the old owner, alive again, announces a call: %v", err)
	}
	must(t, intent("r", won[0], 2, 3)) // of a bridge in no table, which is as alive as ever
	must(t, take(a, "r", "x"))         // and counts as ended for who takes the run

	// Its owner may give up a run, and anybody then acquires it.
	_, err = a.ChangeRun(t.Context(), "s", func(k *ledger.JournaledRun) error { k.Release(); return nil })
	must(t, err)
	must(t, take(again(t), "s", "y"))

	// Taking it over and leaving it paused is taking it.
	pause := func() error {
		_, err := a.ChangeRun(t.Context(), "u", func(k *ledger.JournaledRun) error { k.Acquire("y"); k.Release(); return nil })
		return err
	}
	if err := pause(); !errors.Is(err, ledger.ErrOwnerAlive) {
		t.Errorf("a run of a bridge that is alive is paused by another: %v", err)
	}
	must(t, table.Leave(t.Context(), "x"))
	must(t, pause())
	if err := intent("u", "x", 1, 1); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("the old owner announces a call: %v", err)
	}
}

// Asking is the suite of a store in which one bridge may acquire the run of another that
// is halted: people are asked by the one that has the run. s has the requests beside a.
func Asking(t *testing.T, a Journaled, s approval.Store) {
	question := func(id, run, by string, lease int64) approval.StoredRequest {
		return approval.StoredRequest{Request: approval.Request{ID: id, Run: run, Until: time.Now().Add(time.Hour)}, Bridge: by, Lease: lease}
	}
	change := func(run string, to func(*ledger.JournaledRun)) {
		t.Helper()
		_, err := a.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error { to(k); return nil })
		must(t, err)
	}
	acquire := func(run, by string) { t.Helper(); change(run, func(k *ledger.JournaledRun) { k.Acquire(by) }) }
	must(t, a.Append(t.Context(), begun("r", "x")))
	must(t, s.Put(t.Context(), question("q1", "r", "x", 1)))
	acquire("r", "y")
	must(t, s.Put(t.Context(), question("q2", "r", "y", 2)))
	for id, q := range map[string]approval.StoredRequest{
		"its owner before":              question("q3", "r", "x", 1),
		"its owner under another lease": question("q4", "r", "y", 1),
		"another under its lease":       question("q5", "r", "x", 2),
	} {
		if err := s.Put(t.Context(), q); !errors.Is(err, approval.ErrNotOwner) {
			t.Errorf("%s asks: %v", id, err)
		}
	}
	change("r", func(k *ledger.JournaledRun) { k.Release() })
	if err := s.Put(t.Context(), question("q6", "r", "y", 2)); !errors.Is(err, approval.ErrNotOwner) {
		t.Errorf("who gave up the run asks: %v", err)
	}
	must(t, s.Put(t.Context(), question("q7", "r", "x", 0)))    // of an older release
	must(t, s.Put(t.Context(), question("q8", "none", "x", 1))) // whose journal was given up

	// Whoever acquires a run has then all that was asked before, and nothing is asked after.
	for i := range 30 {
		run := fmt.Sprint("race", i)
		must(t, a.Append(t.Context(), begun(run, "x")))
		put := make(chan error, 1)
		go func() { put <- s.Put(t.Context(), question("q"+run, run, "x", 1)) }()
		acquire(run, "y")
		all, err := s.Requests(t.Context(), approval.Filter{Run: run})
		must(t, err)
		switch err := <-put; {
		case err == nil && len(all) == 1, errors.Is(err, approval.ErrNotOwner) && len(all) == 0:
		default:
			t.Fatalf("asked with %v, and its next owner has %d questions", err, len(all))
		}
	}
}
