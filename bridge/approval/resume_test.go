package approval

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A question that was put while anybody could answer it is put anew once only
// somebody else than the asker may.
func TestAgainUnderSeparation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		ask := func(separate, again bool) (*Broker, context.CancelFunc) {
			b := New(Options{Store: store, Bridge: "b", Separate: func() bool { return separate }})
			ctx, cancel := context.WithCancel(t.Context())
			r := question(1)
			r.Again = again
			go func() { _, _ = b.Ask(ctx, r) }()
			synctest.Wait()
			return b, cancel
		}
		first, cancel := ask(false, false)
		first.Suspend(question(1).Run)
		cancel()
		synctest.Wait()
		second, cancel := ask(true, true)
		defer cancel()
		open, err := store.Requests(t.Context(), Filter{Open: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if len(open) != 1 || !open[0].Separate || !open[0].NeedsApprover() {
			t.Errorf("%d are open: %+v", len(open), open)
		}
		if taken := second.Take(question(1).Run); len(taken) != 1 || !taken[0].Separate {
			t.Errorf("the run asks %+v", taken)
		}
	})
}
