package approval

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A woken is a bridge that was halted while another one acquired its run, and does not
// know it yet; and the other one.
type woken struct {
	old, next *Broker
	store     *Memory
	ctx       context.Context // of the old one's run
	cancel    context.CancelFunc
	first     <-chan answer // of the old one's call
	question  Request
}

func under(lease int64, again bool) func(*Request) {
	return func(r *Request) { r.Lease, r.Again = lease, again }
}

// wakes runs f with a bridge that has asked about a call of a run.
func wakes(t *testing.T, f func(t *testing.T, w woken)) {
	synctest.Test(t, func(t *testing.T) {
		w := woken{store: new(Memory)}
		w.old, w.next = New(Options{Store: w.store, Bridge: "old"}), New(Options{Store: w.store, Bridge: "next"})
		w.ctx, w.cancel = context.WithCancel(t.Context())
		defer w.cancel()
		w.first = asks(w.ctx, w.old, question(1, under(1, false)))
		w.question = open(t, w.store)[0].Request // not shown: a further call may join it
		f(t, w)
		w.old.EndRun("r1")
		w.next.EndRun("r1")
		synctest.Wait()
	})
}

// What another bridge has taken up stays open, whatever the old one makes of it.
func TestTakenUpStaysOpen(t *testing.T) {
	for name, does := range map[string]func(w woken){
		"its call is cancelled": func(w woken) { w.cancel() },
		"its run ends":          func(w woken) { w.old.EndRun("r1") },
		"its run is suspended":  func(w woken) { w.old.Suspend("r1"); w.cancel() },
		"its server changed":    func(w woken) { w.old.EndAllStale(func(Key) bool { return true }) },
		"it asks again":         func(w woken) { asks(w.ctx, w.old, question(1, under(1, true))) },
		"its call changed": func(w woken) {
			_ = w.old.EndStale(w.ctx, "r1", 1, 1)
		},
		"it extends the time": func(w woken) { w.old.Extend("r1", time.Now().Add(time.Hour)) },
		"a further call joins": func(w woken) {
			asks(w.ctx, w.old, question(2, under(1, false)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			wakes(t, func(t *testing.T, w woken) {
				c := asks(t.Context(), w.next, question(1, under(2, true)))
				stillAsks(t, c)
				does(w)
				synctest.Wait()
				stillAsks(t, c)
				all, err := w.store.Requests(t.Context(), Filter{ID: w.question.ID})
				if err != nil || len(all) != 1 || all[0].Bridge != "next" || all[0].Lease != 2 || all[0].Verdict != nil || !all[0].Until.Equal(w.question.Until) || len(all[0].Items) != 1 {
					t.Fatalf("stored is %+v, %v", all, err)
				}
				settle(t, w.next, w.question, yes)
				wantAnswer(t, c, "yes")
			})
		})
	}
}

// The answer to what another bridge has taken up is for that bridge alone: edited
// arguments are dropped once it has them, and not before.
func TestTakenUpIsAnsweredThere(t *testing.T) {
	wakes(t, func(t *testing.T, w woken) {
		stored, err := w.next.questions.takeUp(t.Context(), StoredRequest{Request: w.question}, 2)
		if err != nil || stored.Bridge != "next" {
			t.Fatalf("taken up: %+v, %v", stored, err)
		}
		edited := yes
		edited.Args = []byte(`{"to":"bob"}`)
		settle(t, w.next, w.question, edited)
		synctest.Wait()
		select {
		case got := <-w.first:
			t.Fatalf("the old bridge has the answer: %+v", got)
		default:
		}
		all, err := w.store.Requests(t.Context(), Filter{ID: w.question.ID})
		if err != nil || len(all) != 1 || string(all[0].Verdict.Args) != string(edited.Args) {
			t.Errorf("stored is %+v, %v", all, err)
		}
	})
}

// What the old bridge has closed before another one could take it up is asked anew.
func TestClosedBeforeItIsTakenUp(t *testing.T) {
	wakes(t, func(t *testing.T, w woken) {
		stored, err := w.store.Requests(t.Context(), Filter{ID: w.question.ID})
		if err != nil {
			t.Fatal(err)
		}
		w.cancel()
		synctest.Wait()
		late, err := w.next.questions.takeUp(t.Context(), stored[0], 2) // listed before it was closed
		if err != nil || late.Verdict == nil || w.next.questions.counts(late) {
			t.Fatalf("taken up: %+v, %v", late, err)
		}
		c := asks(t.Context(), w.next, question(1, under(2, true)))
		stillAsks(t, c)
		anew := only(t, w.next, "r1")
		if anew.ID == w.question.ID {
			t.Fatal("it waits for what is closed")
		}
		settle(t, w.next, anew, yes)
		wantAnswer(t, c, "yes")
	})
}

// A bridge that resumes a run which another one has resumed since is told so, and gets no
// answer to what that one asks.
func TestResumedUnderAnOlderLease(t *testing.T) {
	for name, answered := range map[string]bool{"open": false, "answered": true} {
		t.Run(name, func(t *testing.T) {
			wakes(t, func(t *testing.T, w woken) {
				listed := open(t, w.store)[0]
				c := asks(t.Context(), w.next, question(1, under(2, true)))
				if answered {
					settle(t, w.next, w.question, yes)
					wantAnswer(t, c, "yes")
				}
				third := New(Options{Store: w.store, Bridge: "third"})
				_, err := third.Ask(t.Context(), question(1, under(1, true)))
				if !errors.Is(err, ErrNotOwner) {
					t.Errorf("asked under an older lease: %v", err)
				}
				if _, err := third.questions.takeUp(t.Context(), listed, 1); !errors.Is(err, ErrNotOwner) { // listed before
					t.Errorf("taken up under an older lease: %v", err)
				}
				w.cancel()
			})
		})
	}
}
