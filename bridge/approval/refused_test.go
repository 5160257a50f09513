package approval

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/profiles"
)

// away is a run that asked about its first call, with two that are planned, and was
// suspended by its bridge; another one goes on with it.
type away struct {
	*testing.T
	store    *Memory
	next     *process
	question Request
}

// suspended plays a run that is suspended, until the test of it ends.
func suspended(t *testing.T, test func(away)) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		first := New(Options{Store: store, Bridge: "first"})
		ctx, cancel := context.WithCancel(t.Context())
		asked := asks(ctx, first, next(1, 1, planning(next(0, 2), next(0, 3))))
		ann := people(t, Realm{}, []Approver{person("ann", Admin, 0)})
		a := away{t, store, newProcess(store, "next", "", ann), only(t, first, "r1")}
		first.Suspend("r1")
		cancel()
		<-asked
		test(a)
		a.next.EndRun("r1")
	})
}

// refused says why a call of the run is refused whatever policy says; empty if it is not.
func (a away) refused(r Request) Reason {
	a.Helper()
	no, is, err := a.next.Refused(a.Context(), "r1", r.Items[0].Call, r.Items[0].Key, true)
	if err != nil {
		a.Fatal(err)
	}
	if !is {
		return ""
	}
	return reasonOf(no)
}

// A no that a run gets while it is away holds for all that it names, also for what was
// planned, whatever policy and the tool's description have become by the time that the
// run goes on. What it does not name is asked about.
func TestNoToASuspendedRun(t *testing.T) {
	changed := func(r *Request) { r.Items[0].Key.Revision, r.Items[0].Key.Definition = "rev2", "def2" }
	some := yes
	some.Rows = []int{1, 3}
	for name, row := range map[string]struct {
		say  Verdict
		want [3]Reason // of its calls
	}{
		"no":                  {no, [3]Reason{ElicitationDeclined, ElicitationDeclined, ElicitationDeclined}},
		"no, and stop":        {Verdict{Reason: Declined, Stop: true, By: "ann", Channel: "page"}, [3]Reason{Declined, Declined, Declined}},
		"no to one":           {some, [3]Reason{"", Declined, ""}},
		"yes":                 {yes, [3]Reason{}},
		"nobody's":            {Verdict{Reason: NoApprover, Channel: "elicitation"}, [3]Reason{}},
		"by a run that ended": {unanswered(nil), [3]Reason{}},
	} {
		t.Run(name, func(t *testing.T) {
			suspended(t, func(a away) {
				if _, err := a.store.Update(t.Context(), a.question.ID, func(e *StoredRequest) error { e.settle(row.say, time.Now()); return nil }); err != nil {
					t.Fatal(err)
				}
				for i, want := range row.want {
					if got := a.refused(next(i+1, i+1, changed)); got != want {
						t.Errorf("call %d is refused for %q, want %q", i+1, got, want)
					}
				}
				if got := a.refused(next(4, 4, changed)); got != "" {
					t.Errorf("another call is refused for %q", got)
				}
			})
		})
	}
}

// What a no to the run's next calls means is learnt, too, when the run goes on: no more of
// that tool.
func TestNoMoreToASuspendedRun(t *testing.T) {
	suspended(t, func(a away) {
		nevermore := no
		nevermore.NoMore = true
		settle(t, a.next.Broker, a.question, nevermore)
		if got := a.refused(next(1, 1)); got != ElicitationDeclined {
			t.Errorf("the first call is refused for %q", got)
		}
		wantAnswer(t, asks(t.Context(), a.next.Broker, next(2, 7)), ElicitationDeclined)
	})
}

// A no that comes while a run goes on, just before its question turns out to be another
// one now, counts.
func TestNoToAStaleQuestion(t *testing.T) {
	for name, relayed := range map[string]bool{"settled": false, "relayed": true} {
		t.Run(name, func(t *testing.T) {
			suspended(t, func(a away) {
				now := next(1, 1, risk(profiles.Low))
				now.Again = true
				stored, err := a.store.Requests(t.Context(), Filter{ID: a.question.ID})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.store.Update(t.Context(), a.question.ID, func(e *StoredRequest) error {
					if relayed {
						_, err := e.relay(a.question.Digest(), signedBy(t, a.next.people, "ann", a.question, Verdict{Reason: ElicitationDeclined}))
						return err
					}
					e.settle(no, time.Now())
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				a.next.mu.Lock()
				late, err := a.next.questions.endStale(t.Context(), stored[0], 1, 0)
				a.next.mu.Unlock()
				if err != nil || late == nil || late.Approve {
					t.Errorf("ended by %+v, %v", late, err)
				}
				wantAnswer(t, asks(t.Context(), a.next.Broker, now), ElicitationDeclined)
			})
		})
	}
}

// A run that is here remembers what of its plan was refused, under whatever policy the
// call then comes, and however often, and of the same that was planned twice one no is enough.
func TestNoToAPlan(t *testing.T) {
	revised := func(r *Request) { r.Items[0].Key.Revision = "rev2" }
	bubble(t, Limits{Flood: 3}, func(t *testing.T, b *Broker) {
		first := asks(t.Context(), b, next(1, 1, planning(next(0, 2), next(0, 3), next(0, 3))))
		q := only(t, b, "r1")
		some := yes
		some.Rows = []int{1, 3}
		settle(t, b, q, some)
		wantAnswer(t, first, "yes")
		wantAnswer(t, asks(t.Context(), b, next(2, 3)), Declined)
		wantAnswer(t, asks(t.Context(), b, next(3, 2, revised)), Declined)
		for _, want := range []error{nil, ErrFlood} {
			if v, is, err := b.Refused(t.Context(), "r1", 5, next(5, 2, revised).Items[0].Key, false); !is || reasonOf(v) != Declined || !errors.Is(err, want) {
				t.Errorf("what was refused: %+v, %v, want %v", v, err, want)
			}
		}
	})
}

// A planned call that comes when the answer is there, but this process has not seen it
// yet, is answered by it.
func TestPlannedCallInTheMomentOfTheAnswer(t *testing.T) {
	for _, row := range []struct {
		say  Verdict
		want Reason
	}{{no, ElicitationDeclined}, {yes, "yes"}} {
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			first := asks(t.Context(), b, next(1, 1, planning(next(0, 2))))
			q := only(t, b, "r1")
			b.mu.Lock()
			if _, err := b.store.Update(t.Context(), q.ID, func(e *StoredRequest) error { e.settle(row.say, time.Now()); return nil }); err != nil {
				t.Fatal(err)
			}
			w := b.questions.wait(next(2, 2))
			b.mu.Unlock()
			<-w.question.settled
			if got := reasonOf(w.question.verdict.About(w.row)); got != row.want {
				t.Errorf("the planned call is answered %s, want %s", got, row.want)
			}
			wantAnswer(t, first, row.want)
		})
	}
}

// A yes to a call alone, which came in another order than planned, does not undo the no
// that its plan got meanwhile.
func TestYesAfterTheNoToThePlan(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first := asks(t.Context(), b, next(1, 1, planning(next(0, 2), next(0, 3))))
		plan := only(t, b, "r1")
		third := asks(t.Context(), b, next(2, 3))
		second := asks(t.Context(), b, next(3, 2))
		settle(t, b, plan, no)
		wantAnswer(t, first, ElicitationDeclined)
		wantAnswer(t, third, ElicitationDeclined)
		stillAsks(t, second)
		settle(t, b, only(t, b, "r1"), yes)
		wantAnswer(t, second, ElicitationDeclined)
	})
}
