package sandbox

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// startTime is what a worker takes to start in these tests.
const startTime = 8 * time.Millisecond

// slowStarts runs a test with a pool of in-memory workers that take startTime to start.
func slowStarts(t *testing.T, o Options, f func(t *testing.T, pool *Pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(o, func(heap int64) (*process, error) {
			time.Sleep(startTime)
			return inMemory(heap)
		})
		defer pool.Close()
		time.Sleep(time.Second)
		f(t, pool)
	})
}

// turn has a session run a script, and reports whether it waited for a worker's start.
func turn(t *testing.T, s *Session) (waited bool) {
	t.Helper()
	before := time.Now()
	if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
		t.Fatal(err)
	}
	return time.Since(before) >= startTime
}

// Sessions that take turns find a worker ready, though all places are taken. When it is
// quiet again, no more are ready than usual.
func TestTurnsFindWorkersReady(t *testing.T) {
	slowStarts(t, Options{MaxWorkers: 32}, func(t *testing.T, pool *Pool) {
		waited := 0
		for i := range 500 {
			// A burst of four, and then the time that four starts take.
			if turn(t, pool.Session()) && i >= 100 {
				waited++
			}
			if i%4 == 3 {
				time.Sleep(4 * startTime)
			}
		}
		if waited > 0 {
			t.Errorf("%d of 400 runs waited for a worker's start", waited)
		}
		synctest.Wait()
		if st := pool.Status(); st.Live > 32 || st.Warm <= 2 || st.Warm > 8 || st.Idle < 20 {
			t.Errorf("while they take turns: %+v", st)
		}
		time.Sleep(quiet)
		synctest.Wait()
		if st := pool.Status(); st.Warm != 2 || st.Killed != 0 {
			t.Errorf("when it is quiet: %+v", st)
		}
	})
}

// One session, or one now and then, has no more workers kept ready.
func TestNoTurnsNoMoreWorkers(t *testing.T) {
	slowStarts(t, Options{MaxWorkers: 32}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		for range 50 {
			turn(t, s)
		}
		for range 10 {
			time.Sleep(turnsWithin)
			turn(t, pool.Session())
		}
		synctest.Wait()
		time.Sleep(startTime)
		synctest.Wait()
		if st := pool.Status(); st.Warm != 2 || st.Started != 13 {
			t.Errorf("%+v", st)
		}
	})
}

// A first run that comes before a worker is ready says nothing about the next ones.
func TestFirstRunKeepsNoMoreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(Options{}, func(heap int64) (*process, error) {
			time.Sleep(startTime)
			return inMemory(heap)
		})
		defer pool.Close()
		if !turn(t, pool.Session()) {
			t.Error("a worker was ready")
		}
		time.Sleep(turnsWithin)
		synctest.Wait()
		if st := pool.Status(); st.Warm != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// A run that takes another heap limit is not helped by workers that are ready.
func TestTightHeapsKeepNoMoreReady(t *testing.T) {
	slowStarts(t, Options{MaxWorkers: 32}, func(t *testing.T, pool *Pool) {
		for range 20 {
			if _, err := pool.Session().Run(t.Context(), Script{Source: "one", Limits: Limits{Heap: 64 << 20}}, &recorder{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if st := pool.Status(); st.Warm != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// However many take turns, each worker serves one session.
func TestTurnsShareNoWorker(t *testing.T) {
	slowStarts(t, Options{MaxWorkers: 16}, func(t *testing.T, pool *Pool) {
		var mu sync.Mutex
		owners := make(map[*process]*Session)
		sessions := make([]*Session, 60)
		for i := range sessions {
			sessions[i] = pool.Session()
		}
		for round := range 3 {
			var all sync.WaitGroup
			for k := range 4 {
				all.Go(func() {
					for i := k; i < len(sessions); i += 4 {
						s := sessions[(i*7+round)%len(sessions)]
						turn(t, s)
						pool.mu.Lock()
						w := s.idle
						pool.mu.Unlock()
						mu.Lock()
						if owner := owners[w]; w != nil && owner != nil && owner != s {
							t.Error("a worker serves a second session")
						}
						owners[w] = s
						mu.Unlock()
					}
				})
			}
			all.Wait()
		}
	})
}

// A worker at rest counts with what it uses: where four may run, twelve rest. One that runs
// again counts with more, and what rests makes room.
func TestRestingWorkersCountWithWhatTheyUse(t *testing.T) {
	budgeted(t, Options{}, func(t *testing.T, pool *Pool, _ func() []*weighed) {
		sessions := make([]*Session, 12)
		for i := range sessions {
			sessions[i] = pool.Session()
			if _, err := sessions[i].Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		// 256 MB hold nine of 20 MB beside one that starts with 64.
		if st := pool.Status(); st.Idle != 10 || st.Live != 10 {
			t.Errorf("%+v", st)
		}
		for range 4 {
			go sessions[11].Run(t.Context(), Script{Source: "sequence 1"}, &recorder{answer: waitForEver})
			synctest.Wait()
		}
		if st := pool.Status(); st.Running != 4 || st.Queued != 0 || st.Idle != 0 {
			t.Errorf("four that run: %+v", st)
		}
		waits := runs(t.Context(), pool)
		if st := pool.Status(); st.Running != 4 || st.Queued != 1 {
			t.Errorf("a fifth: %+v", st)
		}
		time.Sleep(30 * time.Second)
		if err := <-waits; err == nil {
			t.Error("the fifth began")
		}
	})
}

// Workers at rest do not all run again at once: the budget holds four runs, and the others wait.
func TestRestingWorkersRunAgainWithinTheBudget(t *testing.T) {
	budgeted(t, Options{}, func(t *testing.T, pool *Pool, _ func() []*weighed) {
		sessions := make([]*Session, 8)
		for i := range sessions {
			sessions[i] = pool.Session()
			if _, err := sessions[i].Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
		}
		if st := pool.Status(); st.Idle != 8 {
			t.Errorf("at rest: %+v", st)
		}
		for _, s := range sessions {
			go s.Run(t.Context(), Script{Source: "sequence 1"}, &recorder{answer: waitForEver})
		}
		synctest.Wait()
		if st := pool.Status(); st.Running != 4 || st.Queued != 4 || st.Idle != 0 {
			t.Errorf("%+v", st)
		}
	})
}
