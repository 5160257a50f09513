package turns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/turns"
)

// A session with thousands of pieces of work in the queue lets another session's next
// piece wait for what has begun, and for one piece of each other session: counted in turns.
func TestOthersWaitForABoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, busy = 2, 4
		q := turns.New(places)
		var mu sync.Mutex
		var order []string
		work := make(chan struct{})
		do := func(session string) {
			go q.Do(t.Context(), session, func() {
				mu.Lock()
				order = append(order, session)
				mu.Unlock()
				<-work
			})
		}
		for range 1000 {
			for s := range busy {
				do(fmt.Sprint("busy", s))
			}
		}
		synctest.Wait() // all but the first are in the queue
		for s := range 3 {
			do(fmt.Sprint("quiet", s))
			synctest.Wait()
		}
		for range busy * 1000 {
			work <- struct{}{}
			synctest.Wait()
		}
		for range 3 {
			work <- struct{}{}
			synctest.Wait()
		}
		if len(order) != busy*1000+3 {
			t.Fatalf("%d pieces of work were done", len(order))
		}
		for s := range 3 {
			name := fmt.Sprint("quiet", s)
			if at := slices.Index(order, name); at > places+busy+3-1 {
				t.Errorf("%s waited for %d pieces of work of others", name, at)
			}
		}
		// Those that have much take turns as well.
		count := map[string]int{}
		for i, name := range order[:len(order)-busy] {
			if strings.HasPrefix(name, "busy") {
				count[name]++
			}
			if i > 100 && i%100 == 0 {
				least, most := 1<<30, 0
				for s := range busy {
					n := count[fmt.Sprint("busy", s)]
					least, most = min(least, n), max(most, n)
				}
				if most-least > places+1 {
					t.Fatalf("after %d pieces one session has had %d and another %d", i, most, least)
				}
			}
		}
	})
}

// A session's own work keeps its order, and no more is done at a time than there are places.
func TestPlaces(t *testing.T) {
	for _, places := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { testPlaces(t, places) })
	}
}

func testPlaces(t *testing.T, places int) {
	q := turns.New(places)
	var mu sync.Mutex
	now, most := 0, 0
	var order []int
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			_ = q.Do(t.Context(), "s", func() {
				mu.Lock()
				now++
				most = max(most, now)
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
			})
		})
		synctest.Wait() // it works, or is in the queue
	}
	all.Wait()
	if most != places || len(order) != 50 {
		t.Errorf("%d places: %d at a time, %d in all", places, most, len(order))
	}
	if places == 1 && !slices.IsSorted(order) { // with more, those that begin together have no order
		t.Errorf("in the order %v", order)
	}
}

// Who no longer waits takes no place, and one that was given at the same moment goes on.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns.New(1)
		release := make(chan struct{})
		go q.Do(t.Context(), "a", func() { <-release })
		synctest.Wait()
		why := errors.New("the run has ended")
		ctx, cancel := context.WithCancelCause(t.Context())
		gaveUp := make(chan error, 2)
		for range 2 {
			go func() { gaveUp <- q.Do(ctx, "b", func() { t.Error("work that nobody wanted was done") }) }()
		}
		done := make(chan struct{})
		synctest.Wait()
		go q.Do(t.Context(), "c", func() { close(done) })
		synctest.Wait()
		cancel(why)
		for range 2 {
			if err := <-gaveUp; !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		}
		close(release)
		<-done
		if err := q.Do(ctx, "b", func() {}); err != nil {
			t.Errorf("a free place: %v", err)
		}
	})
}

// Work that panics gives its place back.
func TestPanic(t *testing.T) {
	q := turns.New(1)
	func() {
		defer func() { _ = recover() }()
		_ = q.Do(t.Context(), "a", func() { panic("broken") })
	}()
	if err := q.Do(t.Context(), "b", func() {}); err != nil {
		t.Error(err)
	}
}

// Every piece of work is done exactly once, also where many wait and give up.
func TestMany(t *testing.T) {
	q := turns.New(2)
	var all sync.WaitGroup
	var mu sync.Mutex
	done, given := 0, 0
	for i := range 2000 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			err := q.Do(ctx, fmt.Sprint(i%7), func() { mu.Lock(); done++; mu.Unlock() })
			if err != nil {
				mu.Lock()
				given++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if done+given != 2000 || done < 1000 {
		t.Errorf("%d done, %d given up", done, given)
	}
	if err := q.Do(t.Context(), "last", func() {}); err != nil {
		t.Error(err)
	}
}

// The scheduler has threads to spare, once and for all, and work that is in turns has half of
// the processors.
func TestProcessors(t *testing.T) {
	if os.Getenv("GOMAXPROCS") != "" {
		t.Skip("GOMAXPROCS is set: it stays what it is")
	}
	was := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
	for range 2 {
		if got, want := turns.Processors(), (was+1)/2; got != want {
			t.Errorf("%d places on %d processors, want %d", got, was, want)
		}
		if got := runtime.GOMAXPROCS(0); got != 2*was {
			t.Errorf("the scheduler has %d processors of %d, want twice as many", got, was)
		}
	}
}
