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

// An answer that was given while the run was suspended is for the file that people were
// told of: if the path leads elsewhere by then, they are asked anew.
func TestAgainElsewhere(t *testing.T) {
	for name, row := range map[string]struct {
		answered bool
		leads    string
		want     string
	}{
		"answered, and the same":      {true, "/a", "yes"},
		"answered, and elsewhere":     {true, "/b", "asked"},
		"not answered, and elsewhere": {false, "/b", "asked"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				to := func(folder string) Request {
					r := question(1)
					r.Items[0].About.Facts = []Fact{{Param: "path", Role: "path", Leads: folder}}
					return r
				}
				asks(t.Context(), b, to("/a"))
				q := only(t, b, "r1")
				b.Suspend("r1")
				if row.answered {
					settle(t, b, q, yes)
				}
				again := to(row.leads)
				again.Again = true
				c := asks(t.Context(), b, again)
				if row.want == "yes" {
					wantAnswer(t, c, "yes")
					return
				}
				stillAsks(t, c)
				if got := only(t, b, "r1"); got.ID == q.ID {
					t.Error("the question is the old one")
				}
				b.EndRun("r1")
			})
		})
	}
}
