package stopwatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/stopwatch"
)

func TestAStopwatchStandsStillWhileItIsHeld(t *testing.T) {
	errLate := errors.New("late")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := stopwatch.WithTimeout(t.Context(), time.Second, errLate)
		defer cancel()
		time.Sleep(600 * time.Millisecond)
		first, second := stopwatch.Hold(ctx), stopwatch.Hold(ctx)
		time.Sleep(time.Hour)
		first()
		time.Sleep(time.Hour)
		second()
		time.Sleep(399 * time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("the time passed while it was held")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if context.Cause(ctx) != errLate {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
	})
}

func TestWithoutAStopwatchNothingIsHeld(t *testing.T) {
	stopwatch.Hold(t.Context())()
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []time.Duration
		began := time.Now()
		start := func(d time.Duration) *stopwatch.Limit {
			return stopwatch.StartLimit(d, func() { ended = append(ended, time.Since(began)) })
		}
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		f := start(30 * time.Second)
		wait(20 * time.Second)
		f.Extend(time.Minute)
		wait(50 * time.Second)
		if inTime, extended := f.Stop(); !inTime || !extended {
			t.Errorf("an extended limit: %v %v", inTime, extended)
		}
		f.Extend(time.Second) // too late: it is stopped
		wait(time.Hour)
		f = start(time.Second)
		wait(2 * time.Second)
		f.Extend(time.Second) // too late: it has ended
		wait(time.Hour)
		if inTime, extended := f.Stop(); inTime || extended {
			t.Errorf("one that ran down: %v %v", inTime, extended)
		}
		if len(ended) != 1 || ended[0] != time.Hour+71*time.Second {
			t.Errorf("ended after %v", ended)
		}
	})
}
