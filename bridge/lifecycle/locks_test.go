package lifecycle

import (
	"testing"
	"testing/synctest"
)

// A run is locked for one at a time, and other runs are not.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks
		unlock := l.Lock("r1")
		l.Lock("r2")()
		second := false
		go func() {
			defer l.Lock("r1")()
			second = true
		}()
		synctest.Wait()
		if second {
			t.Fatal("a run was locked twice")
		}
		unlock()
		synctest.Wait()
		if !second {
			t.Error("a run that was unlocked cannot be locked again")
		}
		if len(l.held) > 0 {
			t.Errorf("%d locks are kept that nobody uses", len(l.held))
		}
	})
}
