package stopwatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A busy machine may hold a watch when its time is up already and its timer has not run yet.
func TestAWatchThatIsHeldTooLateEndsWhenItIsLetGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		w := &watch{left: time.Second, running: time.Now().Add(-2 * time.Second), timer: time.AfterFunc(time.Hour, func() { ended = true })}
		resume := Hold(context.WithValue(t.Context(), key{}, w))
		time.Sleep(2 * time.Hour)
		if ended {
			t.Fatal("it ended while it was held")
		}
		resume()
		synctest.Wait()
		if !ended {
			t.Error("it never ends")
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Pause(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("it paused for %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Pause(ctx, time.Hour) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("it went on after its context had ended, for %v", time.Since(began))
		}
	})
}
