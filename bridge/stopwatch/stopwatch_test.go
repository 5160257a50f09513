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
