package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
)

// A run at which a request waits is not handed over to another bridge, however long that
// one asks.
func TestARunThatIsAttendedIsNotHandedOver(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	r, _ := first.roster.lookup(id)
	r.update(lifecycle.Event{Kind: lifecycle.Attaches})
	defer r.update(lifecycle.Event{Kind: lifecycle.Detaches})
	var seconds atomic.Int64
	second := f.bridge(t, "two", queued(), func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(seconds.Add(1)) * time.Second) }
	})
	if err := second.ResumeInBackground(t.Context(), id, "the test"); err != nil {
		t.Errorf("it goes on where it is, but: %v", err)
	}
	if _, err := second.Resume(t.Context(), id, "the test", nil); !errors.Is(err, errBusyElsewhere) {
		t.Errorf("asked for: %v", err)
	}
	if kept, _, err := f.records.Read(t.Context(), id); err != nil || kept.Owner != "one" || kept.HandoverRequestedBy != "" {
		t.Errorf("it is kept as %+v, %v", kept, err)
	}
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	<-r.done
	if n, m := len(first.up.made()), len(second.up.made()); n != 5 || m != 0 {
		t.Errorf("%d calls were made there and %d here", n, m)
	}
}

// A run is nobody's but who started it, here or anywhere.
func TestARunIsItsRequesters(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	if _, err := first.runner.resume(t.Context(), id, claimant{principal: "bob"}); !errors.Is(err, ErrNoRun) {
		t.Errorf("while it is live: %v", err)
	}
	waitUntil(t, func() bool { r, ok := first.roster.lookup(id); return ok && r.quiet() })
	first.Close(0)
	second := f.bridge(t, "two", queued())
	for _, who := range []string{"bob", ""} {
		if _, err := second.runner.resume(t.Context(), id, claimant{principal: who}); !errors.Is(err, ErrNoRun) {
			t.Errorf("%q takes it up: %v", who, err)
		}
	}
	if _, err := second.runner.resume(t.Context(), id, claimant{principal: "ci"}); err != nil {
		t.Errorf("who started it: %v", err)
	}
}

// A run is not suspended while a call of it is under way: its answer would be
// lost.
func TestARunThatSendsIsNotSuspended(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	sent, answer := make(chan struct{}), make(chan struct{})
	b.up.tools["b__echo"] = func(_ context.Context, args json.RawMessage) (string, error) {
		close(sent)
		<-answer
		return text(string(args)), nil
	}
	id := f.startPaused(t, b, `return await Promise.all([codemode.b__echo({n: 1}), codemode.a__echo({n: 2})])`, 1)
	<-sent
	r, _ := b.roster.lookup(id)
	if r.evict() || r.suspend() {
		t.Error("it is suspended")
	}
	close(answer)
	waitUntil(t, r.suspend)
	<-r.done
	if r.now().Phase != lifecycle.Suspended {
		t.Errorf("it ended: %v", r.end.err)
	}
}

// Of bridges that want the same run, one gets it, and nothing is made twice.
func TestBridgesRaceForARun(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, pauses, 2)
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	racers := make([]*bench, 4)
	for i := range racers {
		racers[i] = f.bridge(t, fmt.Sprint("racer ", i), queued())
	}
	var wait sync.WaitGroup
	for _, b := range racers {
		wait.Go(func() {
			if err := b.ResumeInBackground(t.Context(), id, "the test"); err != nil && !errors.Is(err, ErrNoRun) && !errors.Is(err, errBusyElsewhere) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	waitUntil(t, func() bool { left, err := f.records.Runs(t.Context()); return err == nil && len(left) == 0 })
	made := 0
	for _, b := range racers {
		made += len(b.up.made())
	}
	if made != 3 {
		t.Errorf("%d calls were made, not the 3 that were left", made)
	}
}

// A run is known at every moment, also while a bridge acquires it.
func TestARunThatIsAcquiredIsKnown(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	id := f.startPaused(t, b, `return await codemode.a__echo({n: 1})`, 1)
	waitUntil(t, func() bool { r, ok := b.roster.lookup(id); return ok && r.suspend() })
	waitUntil(t, func() bool { _, live := b.roster.lookup(id); return !live })
	if _, _, err := b.leases.acquire(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	st, ok := b.Run(t.Context(), id)
	if !ok || st.State != lifecycle.RunPaused || len(b.Runs(t.Context())) != 1 || b.Status(t.Context()).Paused != 1 {
		t.Errorf("it is %q (%v), %d are listed", st.State, ok, len(b.Runs(t.Context())))
	}
}

// Who ends a run that its bridge suspends in the same moment, or that dies before it
// has seen that, has ended it: nobody goes on with it.
func TestAWishToEndOutlivesTheBridge(t *testing.T) {
	ended := func(t *testing.T, f *fleet, b *bench, id string) {
		t.Helper()
		if err := b.ResumeInBackground(t.Context(), id, "the test"); !errors.Is(err, ErrNoRun) {
			t.Errorf("going on with it: %v", err)
		}
		if made := b.up.made(); len(made) > 0 {
			t.Errorf("made %q", made)
		}
		f.open(t, 0)
		if left, err := f.records.Runs(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("journals are left: %v, %v", left, err)
		}
		why := ""
		for row, err := range f.records.Rows(t.Context(), ledger.Query{Runs: []string{id}}) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Record.Event == ledger.RunEnded {
				why += row.Record.Error
			}
		}
		if why != "bob stopped the run" {
			t.Errorf("it ended: %q", why)
		}
		asked, err := b.o.Gate.Broker().Requests(t.Context(), approval.Filter{Run: id})
		if err != nil || len(asked) == 0 {
			t.Fatalf("asked were %+v, %v", asked, err)
		}
		for _, e := range asked {
			if v := e.Verdict; v == nil || v.By != "" || v.Reason != approval.Expired || v.Stopped != "bob" {
				t.Errorf("what it asked is settled with %+v", v)
			}
		}
	}
	t.Run("as it is suspended", func(t *testing.T) {
		f := newFleet()
		first, second := f.bridge(t, "one", queued()), f.bridge(t, "two", queued())
		id := f.startPaused(t, first, pauses, 2)
		r, _ := first.roster.lookup(id)
		waitUntil(t, func() bool { return r.quiet() })
		if err := second.CancelRun(t.Context(), id, "bob"); err != nil {
			t.Fatal(err)
		}
		r.suspend()
		<-r.done
		ended(t, f, second, id)
	})
	t.Run("after its bridge died", func(t *testing.T) {
		f := newFleet()
		id := f.endsAsking(t, pauses, 2)
		_, err := f.records.ChangeRun(t.Context(), id, func(k *ledger.JournaledRun) error {
			k.Acquire("dead")
			k.CancelRequestedBy = "bob"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.gone["dead"] = true
		ended(t, f, f.bridge(t, "two", queued()), id)
	})
}

// A meddler is a journal in which something happens right after a read.
type meddler struct {
	ledger.Journal
	once sync.Once
	then func()
}

func (m *meddler) Read(ctx context.Context, run string) (ledger.JournaledRun, []ledger.JournalEntry, error) {
	k, all, err := m.Journal.Read(ctx, run)
	m.once.Do(m.then)
	return k, all, err
}

// A run that ended while a bridge was about to resume it has ended, also where its
// journal is kept.
func TestWhatHasEndedIsNotResumed(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, pauses, 2)
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	m := &meddler{Journal: f.records, then: func() {
		_, err := f.records.ChangeRun(t.Context(), id, func(k *ledger.JournaledRun) error { k.State = ledger.Finished; return nil })
		if err != nil {
			t.Error(err)
		}
	}}
	second := f.bridge(t, "two", queued(), func(o *Options) { o.Journal = m })
	if err := second.ResumeInBackground(t.Context(), id, "the test"); !errors.Is(err, ErrNoRun) {
		t.Errorf("going on with it: %v", err)
	}
	if made := second.up.made(); len(made) > 0 {
		t.Errorf("made %q", made)
	}
}

// A run that waits for a person gives its worker to one that waits for a worker,
// the one left the longest ago first.
func TestRunsThatWereLeftMakeRoom(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	var all []*run
	for n := range 2 {
		r, ok := b.roster.lookup(f.startPaused(t, b, pauses, 2*(n+1)))
		if !ok {
			t.Fatal("it is not live")
		}
		waitUntil(t, func() bool { return r.quiet() })
		b.runner.leave(r)
		all = append(all, r)
	}
	b.MakeRoom()
	<-all[0].done
	if all[0].now().Phase != lifecycle.Suspended {
		t.Errorf("the first ended: %v", all[0].end.err)
	}
	select {
	case <-all[1].done:
		t.Errorf("the second ended: %v", all[1].end.err)
	default:
	}
}

// A bridge that was not alive for the others gives up the runs that they have acquired,
// with their questions, and no other. Whatever its own clock says, nothing depends on it:
// that of the other is half a minute off.
func TestReclaim(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	lost, kept := f.startPaused(t, first, pauses, 2), ""
	second := f.bridge(t, "two", queued(), func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(-30 * time.Second) }
	})
	kept = f.startPaused(t, first, `return await codemode.a__echo({n: 9})`, 3)
	f.gone["one"] = true
	if err := second.ResumeInBackground(t.Context(), lost, "the test"); err != nil {
		t.Fatal(err)
	}
	f.gone["one"] = false
	r, _ := first.roster.lookup(lost)
	if err := first.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-r.done
	if at := r.now(); !at.LeaseLost {
		t.Errorf("the run that another has is %+v", at)
	}
	mine, here := first.roster.lookup(kept)
	taken, there := second.roster.lookup(lost)
	if !here || !there {
		t.Fatalf("what nobody has taken is here: %t, what was is there: %t", here, there)
	}
	for _, e := range f.open(t, 3) {
		f.answer(t, e, yes)
	}
	<-mine.done
	<-taken.done
	if n, m := len(first.up.made()), len(second.up.made()); n != 3 || m != 3 {
		t.Errorf("%d calls were made there and %d here", n, m)
	}
}
