package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A shelf keeps records, each call to Record as one commit.
type shelf struct {
	mu      sync.Mutex
	commits [][]string
	takes   time.Duration            // a commit
	fails   func(all []Record) error // nil is never
	failing error
}

func (s *shelf) Record(_ context.Context, all ...Record) error {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if err := s.fails(all); err != nil {
			return err
		}
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	s.commits = append(s.commits, names)
	return nil
}

func (s *shelf) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

func (s *shelf) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.commits...)
}

func unfilled(*Record) {}

func named(name string) Record { return Record{Event: Outcome, Name: name} }

// never is lost by no trail of a test that expects none to be.
func never(t *testing.T) func(error) {
	return func(err error) { t.Errorf("the trail is lost: %v", err) }
}

// What is deferred is written with what follows, in one commit.
func TestTrailWritesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(shelf)
		trail := NewTrail(s, unfilled, true, never(t))
		for _, name := range []string{"started", "preview"} {
			if err := trail.Defer(t.Context(), named(name), Entries{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := trail.Record(t.Context(), named("intent"), Entries{}); err != nil {
			t.Fatal(err)
		}
		if err := trail.Defer(t.Context(), named("outcome"), Entries{}); err != nil {
			t.Fatal(err)
		}
		if err := trail.End(t.Context(), named("ended"), Entries{}); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(s.commits), "[[started preview intent] [outcome ended]]"; got != want {
			t.Errorf("the commits are %s, want %s", got, want)
		}
		if err := trail.Defer(t.Context(), named("late"), Entries{}); err != nil || s.all()[len(s.all())-1] != "late" {
			t.Errorf("what ends after its run is deferred: %q, %v", s.all(), err)
		}
	})
}

// A script that makes a thousand calls at once has its records written in transactions of a bounded size,
// in order, and nobody waits for those that come after their own.
func TestTrailIsWrittenInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Millisecond}
		trail := NewTrail(s, unfilled, true, never(t))
		const calls = 1000
		var mu sync.Mutex
		commitsAt := make([]int, calls) // how many commits there were when each was answered
		for i := range calls {
			go func() {
				e := Entries{All: []JournalEntry{{Run: "r1", Kind: Sent}}}
				if err := trail.Record(t.Context(), named(fmt.Sprint(i)), e); err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				n := len(s.commits)
				s.mu.Unlock()
				mu.Lock()
				defer mu.Unlock()
				commitsAt[i] = n
			}()
			synctest.Wait() // it is in the queue, or writes
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, commit := range s.commits {
			if 2*len(commit) > together {
				t.Errorf("commit %d has %d records with an entry each", i, len(commit))
			}
		}
		got := s.all()
		for i := range calls {
			if i >= len(got) || got[i] != fmt.Sprint(i) {
				t.Fatalf("record %d is not in its place", i)
			}
			if in := 1 + (i+together/2-1)/(together/2); commitsAt[i] > in+1 {
				t.Errorf("record %d was answered after %d commits, and is in number %d", i, commitsAt[i], in)
			}
		}
	})
}

// A shelf that nobody else writes to.
type ownShelf struct{ shelf }

func (*ownShelf) Shared() bool { return false }

// Where no other session writes, all that is queued is one transaction; where one does, and the transaction
// waits for the disk, it is larger than one that does not.
func TestTrailIsWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		largest := func(to Recorder, s *shelf, durable bool) (n int) {
			s.takes = time.Millisecond
			trail := NewTrail(to, unfilled, true, never(t))
			for range 1000 {
				r := named("call")
				r.Durable = durable
				go func() {
					if err := trail.Record(t.Context(), r, Entries{}); err != nil {
						t.Error(err)
					}
				}()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, commit := range s.commits {
				n = max(n, len(commit))
			}
			return n
		}
		alone, shared, synced := new(ownShelf), new(shelf), new(shelf)
		if n := largest(alone, &alone.shelf, true); n < 999 {
			t.Errorf("alone, a transaction has %d records", n)
		}
		if n := largest(shared, shared, false); n != together {
			t.Errorf("beside others, a transaction has %d records", n)
		}
		if n := largest(synced, synced, true); n != syncedTogether {
			t.Errorf("beside others, a transaction that is synced has %d records", n)
		}
	})
}

// What is deferred while much is being written does not wait longer for that.
func TestTrailDefersBehindMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: trailTime}
		trail := NewTrail(s, unfilled, true, never(t))
		for i := range 5 * together {
			if err := trail.Defer(t.Context(), named(fmt.Sprint(i)), Entries{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(MaxDelay) // the first are being written
		if err := trail.Defer(t.Context(), named("late"), Entries{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := s.all(); len(got) != 5*together+1 || got[5*together] != "late" {
			t.Errorf("%d records are written", len(got))
		}
	})
}

// A deferred record is on its way before the delay is over, whatever the run does.
func TestTrailIsWrittenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: trailTime}
		trail, began := NewTrail(s, unfilled, true, never(t)), time.Now()
		kept := make(chan time.Duration, 1)
		if err := trail.Defer(t.Context(), named("outcome"), Entries{Done: func(error) { kept <- time.Since(began) }}); err != nil {
			t.Fatal(err)
		}
		if took := <-kept; took > MaxDelay {
			t.Errorf("it was written after %v", took)
		}
		time.Sleep(time.Hour)
		if len(s.commits) != 1 {
			t.Errorf("the commits are %q", s.commits)
		}
	})
}

// A run has one timer, which goes off early where what it was armed for has been written meanwhile: then nothing is
// written but what has waited, at its own time.
func TestTrailHasOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(shelf)
		trail, began := NewTrail(s, unfilled, true, never(t)), time.Now()
		var timer *time.Timer
		for call := range 50 {
			kept := time.Time{}
			if err := trail.Defer(t.Context(), named("outcome"), Entries{Done: func(error) { kept = time.Now() }}); err != nil {
				t.Fatal(err)
			}
			if timer == nil {
				timer = trail.timer
			}
			if trail.timer != timer || timer == nil {
				t.Fatalf("call %d has another timer than those before it", call)
			}
			time.Sleep(4 * time.Millisecond)
			synctest.Wait()
			if !kept.IsZero() {
				t.Fatalf("after %v an outcome is written that was deferred at %v", kept.Sub(began), time.Since(began)-4*time.Millisecond)
			}
			if err := trail.Record(t.Context(), named("intent"), Entries{}); err != nil {
				t.Fatal(err)
			}
		}
		deferred, kept := time.Now(), make(chan time.Duration, 1)
		if err := trail.Defer(t.Context(), named("last"), Entries{Done: func(error) { kept <- time.Since(deferred) }}); err != nil {
			t.Fatal(err)
		}
		if took := <-kept; took != MaxDelay-trailTime {
			t.Errorf("the last outcome is written after %v", took)
		}
		if err := trail.End(t.Context(), named("end"), Entries{}); err != nil || timer.Stop() {
			t.Errorf("after the end the timer still runs: %v", err)
		}
	})
}

// Where nobody withholds what a run has done, and where the store fails, nothing is deferred.
func TestTrailThatDoesNotDefer(t *testing.T) {
	t.Parallel()
	s := new(shelf)
	if err := NewTrail(s, unfilled, false, never(t)).Defer(t.Context(), named("outcome"), Entries{}); err != nil || len(s.commits) != 1 {
		t.Errorf("%q, %v", s.commits, err)
	}
	full := &shelf{failing: ErrUnavailable, fails: func([]Record) error { return ErrUnavailable }}
	lost := 0
	trail := NewTrail(full, unfilled, true, func(error) { lost++ })
	if err := trail.Defer(t.Context(), named("started"), Entries{}); !errors.Is(err, ErrUnavailable) || lost != 1 {
		t.Errorf("lost %d times: %v", lost, err)
	}
	full.fails = nil
	if err := trail.End(t.Context(), named("ended"), Entries{}); !errors.Is(err, ErrTrailLost) || len(full.commits) != 0 {
		t.Errorf("a run ends that never began: %q, %v", full.commits, err)
	}
}

// Many bytes do not wait.
func TestTrailIsBounded(t *testing.T) {
	t.Parallel()
	s := new(shelf)
	trail := NewTrail(s, unfilled, true, never(t))
	large := Entries{All: []JournalEntry{{Run: "r1", Kind: Replied, Body: make([]byte, maxDeferred+1)}}}
	if err := trail.Defer(t.Context(), named("large"), large); err != nil || len(s.commits) != 1 {
		t.Errorf("%q, %v", s.commits, err)
	}
}

// A deferred record that cannot be written is the end: nothing that follows is written
// but the run's last record.
func TestTrailIsLost(t *testing.T) {
	for _, refusesJournal := range []bool{false, true} {
		loseTrail(t, refusesJournal)
	}
}

func loseTrail(t *testing.T, refusesJournal bool) {
	synctest.Test(t, func(t *testing.T) {
		s := new(shelf)
		var lost []error
		fill := func(r *Record) { r.Name += " of r1" }
		trail := NewTrail(s, fill, true, func(err error) { lost = append(lost, err) })
		if err := trail.Record(t.Context(), named("intent"), Entries{}); err != nil {
			t.Fatal(err)
		}
		s.fails = func([]Record) error { return fmt.Errorf("%w: disk full", ErrUnavailable) }
		var told error
		if err := trail.Defer(t.Context(), named("outcome"), Entries{Done: func(err error) { told = err }}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(MaxDelay)
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], ErrTrailLost) || !errors.Is(told, ErrTrailLost) {
			t.Fatalf("lost %v, told %v", lost, told)
		}
		s.fails = nil
		journal := Entries{All: []JournalEntry{{Run: "r1", Kind: Ended}}}
		if refusesJournal {
			s.fails = func(all []Record) error {
				if all[0].Journal != nil {
					return errors.New("the lease is another's")
				}
				return nil
			}
		}
		for what, err := range map[string]error{
			"an intent": trail.Record(t.Context(), named("next"), Entries{}), "an outcome": trail.Defer(t.Context(), named("next"), Entries{}),
			"nothing": trail.Flush(t.Context()), "the end": trail.End(t.Context(), named("ended"), journal),
		} {
			if !errors.Is(err, ErrTrailLost) {
				t.Errorf("%s after it is lost: %v", what, err)
			}
		}
		if got, want := s.all(), []string{"intent of r1", "ended of r1"}; !slices.Equal(got, want) || len(lost) != 1 {
			t.Errorf("%q are written, want %q; lost %d times", got, want, len(lost))
		}
	})
}

// What is refused for a reason of its own takes nothing else with it.
func TestTrailRefusesOneAlone(t *testing.T) {
	t.Parallel()
	s := &shelf{fails: func(all []Record) error {
		if slices.ContainsFunc(all, func(r Record) bool { return r.Name == "used up" }) {
			return ErrUsedUp
		}
		return nil
	}}
	trail := NewTrail(s, unfilled, true, never(t))
	if err := trail.Defer(t.Context(), named("outcome"), Entries{}); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(t.Context(), named("used up"), Entries{}); !errors.Is(err, ErrUsedUp) {
		t.Errorf("the intent: %v", err)
	}
	if err := trail.Record(t.Context(), named("refusal"), Entries{}); err != nil {
		t.Error(err)
	}
	if got, want := s.all(), []string{"outcome", "refusal"}; !slices.Equal(got, want) {
		t.Errorf("%q are written, want %q", got, want)
	}
}

// Whatever goroutines defer, record, flush and wait, and whenever the store fails: a
// record that counts as written is there, with all that its goroutine did before; each
// is told once what became of it; and after the first that is lost there is none.
func TestTrailLeavesNothingUnwritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed, broken := rapid.Int64().Draw(rt, "seed"), rapid.IntRange(0, 60).Draw(rt, "breaks at commit")
		synctest.Test(t, func(t *testing.T) { wander(rt, t, seed, broken) })
	})
}

func wander(rt *rapid.T, t *testing.T, seed int64, broken int) {
	commits := 0
	s := &shelf{takes: time.Millisecond}
	s.fails = func(all []Record) error {
		if commits++; broken > 0 && commits >= broken {
			return ErrUnavailable
		}
		if slices.ContainsFunc(all, func(r Record) bool { return r.Outcome == Refused }) {
			return ErrUsedUp
		}
		return nil
	}
	var mu sync.Mutex
	told, lost := map[string]int{}, 0
	trail := NewTrail(s, unfilled, true, func(error) { mu.Lock(); defer mu.Unlock(); lost++ })
	check := func(mine []string, why string) {
		there := s.all()
		at := -1
		for _, name := range mine {
			i := slices.Index(there, name)
			if i <= at {
				rt.Errorf("after %s, %s is missing or before what preceded it: %q", why, name, there)
			}
			at = i
		}
	}
	var all sync.WaitGroup
	for g := range 3 {
		all.Go(func() {
			dice := rand.New(rand.NewSource(seed + int64(g)))
			var mine []string
			for i := range 12 {
				r := named(fmt.Sprintf("%d-%d", g, i))
				done := func(err error) {
					mu.Lock()
					defer mu.Unlock()
					told[r.Name]++
					if written := slices.Contains(s.all(), r.Name); written != (err == nil) {
						rt.Errorf("%s: %v, and written is %v", r.Name, err, written)
					}
				}
				switch dice.Intn(5) {
				case 0:
					if trail.Record(t.Context(), r, Entries{Done: done}) == nil {
						mine = append(mine, r.Name)
						check(mine, "a record")
					}
				case 1:
					r.Outcome = Refused
					if err := trail.Record(t.Context(), r, Entries{Done: done}); err == nil {
						rt.Errorf("%s is used up and was written", r.Name)
					}
				case 2:
					if trail.Flush(t.Context()) == nil {
						check(mine, "a flush")
					}
					continue
				case 3:
					time.Sleep(time.Duration(dice.Intn(30)) * time.Millisecond)
					continue
				default:
					if trail.Defer(t.Context(), r, Entries{Done: done}) == nil {
						mine = append(mine, r.Name)
					}
				}
			}
			if trail.Flush(t.Context()) == nil {
				check(mine, "the last flush")
			}
		})
	}
	all.Wait()
	err := trail.End(t.Context(), named("end"), Entries{})
	synctest.Wait()
	if there := s.all(); err == nil && there[len(there)-1] != "end" || err == nil && lost > 0 || lost > 1 {
		rt.Errorf("%q; the end: %v; lost %d times", there, err, lost)
	}
	for name, n := range told {
		if n != 1 {
			rt.Errorf("of %s was told %d times", name, n)
		}
	}
}
