package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A weighed worker uses as much memory as a test says.
type weighed struct {
	*process
	uses atomic.Int64
}

// budgeted runs a test with a pool of in-memory workers with a budget of 256 MB.
func budgeted(t *testing.T, o Options, f func(t *testing.T, pool *Pool, workers func() []*weighed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var all []*weighed
		o.Memory, o.Warm = 256<<20, -1
		pool := newPool(o, func(heap int64) (*process, error) {
			p, err := inMemory(heap)
			if err != nil {
				return nil, err
			}
			w := &weighed{process: p}
			w.uses.Store(20 << 20)
			p.memory = func() (int64, bool) { return w.uses.Load(), w.uses.Load() > 0 }
			mu.Lock()
			defer mu.Unlock()
			all = append(all, w)
			return p, nil
		})
		defer pool.Close()
		f(t, pool, func() []*weighed {
			mu.Lock()
			defer mu.Unlock()
			return all
		})
	})
}

// runs starts a run that waits for an answer until the context ends.
func runs(ctx context.Context, pool *Pool) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		_, err := pool.Session().Run(ctx, Script{Source: "sequence 1"}, &recorder{answer: waitForEver})
		ended <- err
	}()
	synctest.Wait()
	return ended
}

// Runs beyond the budget wait: four workers count with 64 MB each.
func TestBudgetOfMemory(t *testing.T) {
	var crowded atomic.Int32
	budgeted(t, Options{Crowded: func() { crowded.Add(1) }}, func(t *testing.T, pool *Pool, _ func() []*weighed) {
		first, stop := context.WithCancel(t.Context())
		runs(first, pool)
		for range 3 {
			runs(t.Context(), pool)
		}
		if crowded.Load() != 0 {
			t.Error("it is crowded where there is room")
		}
		waits, tired := runs(t.Context(), pool), runs(t.Context(), pool)
		if st := pool.Status(); st.Running != 4 || st.Queued != 2 || crowded.Load() != 2 {
			t.Errorf("%+v, crowded %d times", st, crowded.Load())
		}
		time.Sleep(20 * time.Second)
		stop()
		synctest.Wait()
		if st := pool.Status(); st.Running != 4 || st.Queued != 1 {
			t.Errorf("after a run has ended: %+v", st)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		select {
		case err := <-waits:
			t.Errorf("the run that got room ended: %v", err)
		case err := <-tired:
			if want := "the script could not begin within 30 s: the total memory limit of 256 MB is taken up by other scripts"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		default:
			t.Errorf("no run ended: %+v", pool.Status())
		}
	})
}

// What workers use counts if it is more than they count with anyway, until they
// have given it back.
func TestBudgetCountsWhatIsUsed(t *testing.T) {
	budgeted(t, Options{}, func(t *testing.T, pool *Pool, workers func() []*weighed) {
		runs(t.Context(), pool)
		workers()[0].uses.Store(200 << 20)
		time.Sleep(2 * weighEvery)
		runs(t.Context(), pool)
		if st := pool.Status(); st.Running != 1 || st.Queued != 1 {
			t.Errorf("%+v", st)
		}
		workers()[0].uses.Store(20 << 20)
		time.Sleep(2 * weighEvery)
		synctest.Wait()
		if st := pool.Status(); st.Running != 2 || st.Queued != 0 {
			t.Errorf("when it has given memory back: %+v", st)
		}
	})
}

// When what all use exceeds the budget, workers without a run go first, then the
// run that uses most.
func TestBudgetIsKept(t *testing.T) {
	budgeted(t, Options{}, func(t *testing.T, pool *Pool, workers func() []*weighed) {
		resting := pool.Session()
		if _, err := resting.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
			t.Fatal(err)
		}
		small, large := runs(t.Context(), pool), runs(t.Context(), pool)
		workers()[1].uses.Store(100 << 20)
		workers()[2].uses.Store(150 << 20)
		time.Sleep(2 * weighEvery)
		synctest.Wait()
		if st := pool.Status(); st.Running != 2 || st.Idle != 0 {
			t.Errorf("the worker at rest is not ended for those that run: %+v", st)
		}
		workers()[1].uses.Store(110 << 20)
		time.Sleep(2 * weighEvery)
		synctest.Wait()
		select {
		case err := <-small:
			t.Errorf("the run that uses less ended: %v", err)
		case err := <-large:
			if want := "total memory limit of 256 MB exceeded"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		default:
			t.Errorf("no run ended: %+v", pool.Status())
		}
	})
}

// A worker that nobody can measure counts with its heap, and ends no run.
func TestBudgetWithoutMeasuring(t *testing.T) {
	budgeted(t, Options{Limits: Limits{Heap: 128 << 20}}, func(t *testing.T, pool *Pool, workers func() []*weighed) {
		runs(t.Context(), pool)
		workers()[0].uses.Store(0)
		time.Sleep(2 * weighEvery)
		runs(t.Context(), pool)
		workers()[1].uses.Store(0)
		time.Sleep(2 * weighEvery)
		runs(t.Context(), pool)
		if st := pool.Status(); st.Running != 2 || st.Queued != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// No budget is so small that nothing can run.
func TestOneWorkerAlwaysFits(t *testing.T) {
	budgeted(t, Options{Limits: Limits{Heap: 1 << 30}}, func(t *testing.T, pool *Pool, _ func() []*weighed) {
		pool.mu.Lock()
		pool.options.Memory = 1
		fits := pool.fitsLocked(1 << 30)
		pool.mu.Unlock()
		if !fits {
			t.Error("the first worker does not fit")
		}
	})
}
