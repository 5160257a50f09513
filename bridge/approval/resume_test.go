package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
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

// A bridge that has lost a run to another one keeps nothing of it, and ends neither its
// requests nor its grants: they are the other's.
func TestDrop(t *testing.T) {
	bubble(t, Limits{PerBridge: 2}, func(t *testing.T, b *Broker) {
		wider := yes
		wider.Scope, wider.Count = RunScope, 5
		first := asks(t.Context(), b, question(1, remembered))
		settle(t, b, only(t, b, "r1"), wider)
		wantAnswer(t, first, "yes")
		ctx, cancel := context.WithCancel(t.Context())
		refused := asks(ctx, b, question(2))
		settle(t, b, only(t, b, "r1"), no)
		wantAnswer(t, refused, no.Reason)
		planned := asks(ctx, b, next(3, 3, planning(next(0, 4))))
		left := only(t, b, "r1").ID
		other := asks(t.Context(), b, question(5, inRun("r2")))
		only(t, b, "r2")
		waiting := asks(ctx, b, question(6))
		late := asks(t.Context(), b, question(7, inRun("r3")))
		b.Drop("r1")
		cancel()
		answered(t, planned)
		answered(t, waiting)
		settle(t, b, only(t, b, "r3"), yes) // there is room for it
		wantAnswer(t, late, "yes")
		stillAsks(t, other)
		if all := open(t, b.store); !slices.ContainsFunc(all, func(e StoredRequest) bool { return e.ID == left }) {
			t.Errorf("the run's request is not open any more: %+v", all)
		}
		if all := grants(t, b); len(all) != 1 {
			t.Errorf("the run's grants are %+v", all)
		}
		kept := []any{b.questions.plans["r1"], b.questions.limiter.denied["r1"], b.questions.limiter.refusals["r1"], b.questions.grants.runs["r1"], b.Waiting("r1")}
		if diff := cmp.Diff([]any{(*plan)(nil), map[Key]Verdict(nil), 0, false, 0}, kept, cmp.Comparer(func(a, b *plan) bool { return a == b })); diff != "" {
			t.Errorf("kept of the run (-want +got):\n%s", diff)
		}
		err := b.store.DropGrants(t.Context(), func(Grant) bool { return true }) // as the other bridge does
		if err := errors.Join(err, b.Abandon(t.Context(), nil, func(e StoredRequest) bool { return e.ID == left })); err != nil {
			t.Fatal(err)
		}
	})
}

// A run may be suspended while its calls are still gathered, or wait for their turn.
// People are asked about them all the same: nobody else moves it on.
func TestSuspendedBeforePeopleAreAsked(t *testing.T) {
	for name, row := range map[string]struct {
		limits Limits
		before []Request // made by other runs
		calls  []Request
		want   string // the calls of the requests that are left open
	}{
		"one call":                        {Limits{}, nil, []Request{question(1)}, "1"},
		"several that make one request":   {Limits{}, nil, []Request{question(1, of("a", 1)), question(2, of("b", 2))}, "1 2"},
		"several that do not":             {Limits{}, nil, []Request{question(1, of("a", 1)), question(2, of("b", 2), risk(profiles.Critical))}, "1 | 2"},
		"there is room for one":           {Limits{PerRun: 1}, nil, []Request{question(1, of("a", 1)), question(2, of("b", 2), risk(profiles.Critical))}, "1"},
		"other runs' calls wait for more": {Limits{}, []Request{question(7, inRun("r2"))}, []Request{question(1)}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, s := new(Memory), &script{moves: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				first := New(Options{Store: store, Bridge: "first", Limits: row.limits})
				for _, r := range append(row.before, row.calls...) {
					r.Idle = s.idle
					asks(ctx, first, r)
				}
				if left := open(t, store); len(left) > 0 {
					t.Fatalf("asked before the script was idle: %+v", left)
				}
				first.Suspend("r1")
				cancel()
				synctest.Wait()
				var got []string
				left := open(t, store)
				for _, e := range left {
					var calls []string
					for _, i := range e.Items {
						calls = append(calls, fmt.Sprint(i.Call))
					}
					got = append(got, strings.Join(calls, " "))
					if e.Run != "r1" || e.Bridge != "" {
						t.Errorf("left open is a request of %s at %q", e.Run, e.Bridge)
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(row.want, strings.Join(got, " | ")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(minute) // what is critical is read first
				for _, e := range left {
					if _, err := New(Options{Store: store}).Settle(t.Context(), e.ID, e.Digest(), yes); err != nil {
						t.Fatal(err)
					}
				}
				second := New(Options{Store: store, Bridge: "second"})
				for _, e := range left {
					for _, i := range e.Items {
						r := row.calls[i.Call-1]
						r.Again = true
						wantAnswer(t, asks(t.Context(), second, r), "yes")
					}
				}
			})
		})
	}
}

// open returns what a store has open.
func open(t *testing.T, store Store) []StoredRequest {
	t.Helper()
	all, err := store.Requests(t.Context(), Filter{Open: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What policy only observes is no part of a question: a rule put on trial while people are
// asked has nobody asked anew.
func TestObservingAsksNobodyAnew(t *testing.T) {
	asked := profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Reasons: []profiles.Reason{{Kind: profiles.KindAsklist, Disposition: profiles.Ask, Pattern: "a__*"}}}
	now := asked
	now.Would, now.Observed = profiles.ActionDeny, []profiles.Reason{{Kind: profiles.KindRule, Rule: "no", Disposition: profiles.Deny, Action: profiles.ActionDeny}}
	if !sameDecision(asked, now) || !sameDecision(now, asked) {
		t.Error("it is another question")
	}
	now.Reasons = append(slices.Clone(asked.Reasons), now.Observed...)
	if sameDecision(asked, now) {
		t.Error("enforced, it is the same question")
	}
}
