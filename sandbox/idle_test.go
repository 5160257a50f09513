package sandbox

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While a session runs one script after another, its idle worker is not looked at
// each time, apart from the processor time it has used when a run begins. A worker
// that stays idle is.
func TestIdleIsNotCheckedAfterEveryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 200
		var looks atomic.Int32
		pool := newPool(Options{Warm: -1}, func(heap int64) (*process, error) {
			p, err := inMemory(heap)
			if err == nil {
				cpu := p.cpu
				p.cpu = func() (time.Duration, bool) { looks.Add(1); return cpu() }
			}
			return p, err
		})
		defer pool.Close()
		s := pool.Session()
		for range runs {
			if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		// The fake does not say what it has used: it is asked for at the end too.
		if n := looks.Load(); n != 2*runs {
			t.Errorf("%d looks in %d runs", n, runs)
		}
		looks.Store(0)
		time.Sleep(firstSample + 3*idleSampleEvery)
		synctest.Wait()
		if n := looks.Load(); n < 3 || n > 5 {
			t.Errorf("%d looks at a worker that rests", n)
		}
	})
}

// A call that lasts does not keep its run from noticing what the worker does
// meanwhile.
func TestWorkerEndsInTheMiddleOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *process
		pool := newPool(Options{Warm: -1}, func(heap int64) (_ *process, err error) {
			p, err = inMemory(heap)
			return p, err
		})
		defer pool.Close()
		h := &recorder{answer: waitForEver, idled: make(chan int, 1)}
		go func() {
			<-h.idled
			synctest.Wait() // the call is under way
			p.kill()
		}()
		before := time.Now()
		_, err := pool.Session().Run(t.Context(), Script{Source: "waits"}, h)
		if took := time.Since(before); err == nil || took > 2*takeOverAfter {
			t.Errorf("%v after %v", err, took)
		}
	})
}
