package approval

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A session is of one process: once that has ended, however it did, nobody goes
// by the session's grants, lists them, or keeps them. While it lives, others
// list them and say what they are.
func TestGrantEndsWithItsBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, gone := new(Memory), map[string]bool{}
		of := func(bridge string) *Broker {
			return New(Options{Store: store, Bridge: bridge, Gone: func(b string) bool { return gone[b] }})
		}
		r := question(1, remembered)
		r.Client = "Claude Code"
		first, next, command := of("b1"), of("b2"), of("")
		grant(t, first, r, SessionScope)
		all := grants(t, command)
		if len(all) != 1 {
			t.Fatalf("the grants are %+v", all)
		}
		got := Grant{Covers: all[0].Covers, Client: all[0].Client, Bridge: all[0].Bridge}
		if diff := cmp.Diff(Grant{Covers: "delete with path /a; any n", Client: "Claude Code", Bridge: "b1"}, got); diff != "" {
			t.Fatalf("the grant (-want +got):\n%s", diff)
		}
		wantAnswer(t, asks(t.Context(), first, r), "yes")
		stillAsks(t, asks(t.Context(), next, r)) // its session has the same name, as that of a resumed run

		gone["b1"] = true
		if left := len(grants(t, command)) + len(grants(t, next)); left > 0 {
			t.Errorf("%d grants of a bridge that is gone are listed", left)
		}
		if err := next.Prune(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if kept, err := store.Grants(t.Context()); err != nil || len(kept) > 0 {
			t.Errorf("kept are %+v, %v", kept, err)
		}
		next.EndRun("r1")
	})
}

// A yes to writing in the workspace is for every known server that writes there and is
// bound to nothing else. All other grants are for their own server.
func TestGrantOfTheWorkspace(t *testing.T) {
	key := Bound{"fileKey", Exact, "k"}
	by := func(server string, c Cover, changes ...func(*Request)) Request {
		r := question(1, append([]func(*Request){remembered, func(r *Request) {
			r.Server, r.Items[0].Key.Server, r.Items[0].Key.Identity, r.Items[0].Cover = server, server, "what "+server+" is", c
		}}, changes...)...)
		return r
	}
	figma := by("figma", shared("/w", key))
	for name, row := range map[string]struct {
		had, has Request
		want     bool
	}{
		"another server":                 {figma, by("fs", shared("/w/src")), true},
		"the same server":                {figma, by("figma", shared("/w/src", key)), true},
		"the same server, another place": {figma, by("figma", shared("/w", Bound{"fileKey", Exact, "other"})), false},
		"the same server, no place":      {figma, by("figma", shared("/w")), false},
		"the same server, another one":   {figma, by("figma", shared("/w", key), func(r *Request) { r.Items[0].Key.Identity = "what else it is" }), false},
		"another folder":                 {figma, by("fs", shared("/wide")), false},
		"bound to more":                  {figma, by("fs", shared("/w", key)), false},
		"not known to stay there":        {figma, by("fs", writing("/w")), false},
		"a yes for one server":           {by("figma", writing("/w")), by("fs", writing("/w")), false},
		"a yes for one server, then any": {by("figma", writing("/w")), by("fs", shared("/w")), false},
		"in another session":             {figma, by("fs", shared("/w"), inSession("s2")), false},
		"by another policy":              {figma, by("fs", shared("/w"), func(r *Request) { r.Items[0].Key.Revision = "rev2" }), false},
		"of another profile":             {figma, by("fs", shared("/w"), func(r *Request) { r.Items[0].Key.Profile = "other" }), false},
	} {
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			grant(t, b, row.had, SessionScope)
			row.has.Items[0].Call = 2
			answer := asks(t.Context(), b, row.has)
			if row.want {
				if a := wantAnswer(t, answer, "yes"); a.verdict.Channel != "grant" {
					t.Errorf("%s: answered by %+v", name, a.verdict)
				}
				return
			}
			t.Log(name)
			stillAsks(t, answer)
		})
	}
}

// A grant of an older release, which does not say whose it is or what it binds,
// covers nothing.
func TestGrantOfAnOlderRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		r := question(1, remembered)
		old := Grant{ID: "g1", Key: r.Items[0].Key, Script: r.Script, By: "ann", Made: time.Now(), Until: time.Now().Add(time.Hour), Left: 100}
		if err := store.AddGrant(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		b := New(Options{Store: store, Bridge: "b1"})
		stillAsks(t, asks(t.Context(), b, r))
		if left := grants(t, b); len(left) > 0 {
			t.Errorf("listed are %+v", left)
		}
		old.ID, old.Bridge, old.AnyArgs = "g2", "b1", true
		if err := store.AddGrant(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		old.ID, old.AnyArgs = "g3", false
		if err := store.AddGrant(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		stillAsks(t, asks(t.Context(), b, question(2, remembered)))
		b.EndRun("r1")
	})
}

// A grant for a run ends with the run, and outlives a bridge that ends before.
func TestGrantOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, gone := new(Memory), map[string]bool{}
		of := func(bridge string) *Broker {
			return New(Options{Store: store, Bridge: bridge, Gone: func(b string) bool { return gone[b] }})
		}
		r := question(1, remembered)
		first, next := of("b1"), of("b2")
		grant(t, first, r, RunScope)
		sends(t, first, r)
		gone["b1"] = true
		resumed := question(2, remembered, inSession("s2"))
		sends(t, next, resumed)
		if err := next.Prune(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if all := grants(t, next); len(all) != 1 || all[0].Left != 17 || all[0].Uses != 19 {
			t.Errorf("left are %+v", all)
		}
		next.EndRun("r1")
		if kept, err := store.Grants(t.Context()); err != nil || len(kept) > 0 {
			t.Errorf("kept are %+v, %v", kept, err)
		}
		stillAsks(t, asks(t.Context(), next, resumed))
		next.EndRun("r1")
	})
}

// Calls at the same time use a grant no more often than it may be used. A use of a call that is not sent is
// given back.
func TestUsesAreReserved(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, remembered))
		settle(t, b, only(t, b, "r1"), Verdict{Approve: true, Scope: RunScope, Count: 3, By: "ann"})
		wantAnswer(t, c, "yes")
		second := wantAnswer(t, asks(t.Context(), b, question(2, remembered)), "yes").verdict.Use
		third := wantAnswer(t, asks(t.Context(), b, question(3, remembered)), "yes").verdict.Use
		if second != third || second.Of != 2 {
			t.Errorf("the uses are %+v and %+v", second, third)
		}
		fourth := asks(t.Context(), b, question(4, remembered))
		stillAsks(t, fourth)
		b.Uses().GiveBack(third)
		wantAnswer(t, asks(t.Context(), b, question(5, remembered)), "yes")
		stillAsks(t, asks(t.Context(), b, question(6, remembered)))
		b.Uses().Counts(second)
		b.Uses().Counts(third)
		if left := grants(t, b); len(left) > 0 {
			t.Errorf("left are %+v", left)
		}
	})
}

// A wider yes answers what waits and is like what was asked, and nothing else.
func TestWhatWaitsIsCovered(t *testing.T) {
	bubble(t, Limits{PerRun: 2}, func(t *testing.T, b *Broker) {
		elsewhere := func(r *Request) { r.Items[0].Cover.Bound = []Bound{{"path", Exact, "/b"}} }
		first := asks(t.Context(), b, question(1, remembered))
		shown := only(t, b, "r1")
		alike := asks(t.Context(), b, question(2, remembered))
		queued := asks(t.Context(), b, question(3, remembered))
		other := asks(t.Context(), b, question(4, remembered, elsewhere))
		beyond := asks(t.Context(), b, question(5, remembered))
		settle(t, b, shown, Verdict{Approve: true, Scope: RunScope, Count: 3, By: "ann"})
		wantAnswer(t, first, "yes")
		for _, c := range []<-chan answer{alike, queued} {
			if a := wantAnswer(t, c, "yes"); a.verdict.Channel != "grant" || a.verdict.By != "ann" {
				t.Errorf("answered by %+v", a.verdict)
			}
		}
		stillAsks(t, other)
		stillAsks(t, beyond)
	})
}

// What people refused in a run stays refused there, whatever wider yes they give
// afterwards, or gave in another run meanwhile.
func TestNoOutweighsAGrant(t *testing.T) {
	for name, row := range map[string]struct {
		no   Verdict
		call int // the one that comes afterwards
		run  string
		want Reason
	}{
		"the same call":                   {no, 1, "r1", ElicitationDeclined},
		"another call":                    {no, 3, "r1", "yes"},
		"the same call in another run":    {no, 1, "r2", "yes"},
		"no more of the tool":             {Verdict{Reason: Declined, NoMore: true, By: "ann"}, 3, "r1", Declined},
		"no more, of another run":         {Verdict{Reason: Declined, NoMore: true, By: "ann"}, 3, "r2", "yes"},
		"what nobody answered is no no":   {Verdict{Reason: Timeout, Channel: "timeout"}, 1, "r1", "yes"},
		"no more, after a grant for both": {Verdict{Reason: Declined, NoMore: true, By: "ann"}, 1, "r1", Declined},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				across := func(r *Request) { // of any tool
					r.Decision.Remember = true
					r.Items[0].Cover = Cover{Kind: "write", Across: true, Bound: []Bound{{"folder", UnderFolder, "/ws"}}, Free: []string{"content"}}
				}
				write := func(call int, changes ...func(*Request)) Request {
					return question(call, append([]func(*Request){of("write", call), across}, changes...)...)
				}
				c := asks(t.Context(), b, write(1))
				settle(t, b, only(t, b, "r1"), row.no)
				answered(t, c)
				grant(t, b, question(2, of("edit", 2), across, inRun("r2")), SessionScope)
				a := answered(t, asks(t.Context(), b, write(row.call, inRun(row.run))))
				if got := reasonOf(a.verdict); got != row.want {
					t.Errorf("%s, want %s (%+v)", got, row.want, a.verdict)
				}
			})
		})
	}
}

// It does so for a call that had to wait its turn while people refused the same.
func TestNoOutweighsAGrantInTheQueue(t *testing.T) {
	bubble(t, Limits{PerRun: 1}, func(t *testing.T, b *Broker) {
		wide := func(r *Request) { r.Decision.Remember = true; remembered(r) }
		first := asks(t.Context(), b, question(1, of("a", 1), wide))
		q := only(t, b, "r1") // seen: the next one waits
		second := asks(t.Context(), b, question(1, of("a", 1), wide))
		settle(t, b, q, no)
		wantAnswer(t, first, ElicitationDeclined)
		wantAnswer(t, second, ElicitationDeclined)
	})
}

// A yes to several kinds of calls makes one grant, so that the number that the person
// chose is of all of them.
func TestGrantOfSeveralKinds(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		at := func(path string) func(*Request) {
			return func(r *Request) { r.Items[0].Cover.Bound = []Bound{{"path", Exact, path}} }
		}
		asks(t.Context(), b, question(1, remembered, onLine(1)))
		asks(t.Context(), b, question(2, remembered, onLine(1), at("/b")))
		settle(t, b, only(t, b, "r1"), Verdict{Approve: true, Scope: RunScope, Count: 4, By: "ann"})
		sends(t, b, question(3, remembered, at("/b")))
		stillAsks(t, asks(t.Context(), b, question(4, remembered, at("/c"))))
		sends(t, b, question(5, remembered))
		stillAsks(t, asks(t.Context(), b, question(6, remembered, at("/b"))))
		b.EndRun("r1")
	})
}

// A grant that was revoked does not come back when its run is resumed, and neither do
// its uses.
func TestGrantIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		first, next := New(Options{Store: store, Bridge: "b1"}), New(Options{Store: store, Bridge: "b2"})
		grant(t, first, question(1, remembered), RunScope)
		if ok, err := first.Revoke(t.Context(), grants(t, first)[0].ID); !ok || err != nil {
			t.Fatalf("revoked %v, %v", ok, err)
		}
		first.Suspend("r1")
		again := func(r *Request) { r.Again = true }
		a := wantAnswer(t, asks(t.Context(), next, question(1, remembered, again)), "yes")
		if all := grants(t, next); len(all) > 0 || a.verdict.Scope != Once {
			t.Errorf("answered %+v, with the grants %+v", a.verdict, all)
		}
		stillAsks(t, asks(t.Context(), next, question(2, remembered)))
		next.EndRun("r1")
	})
}

// What a grant has answered is not sent again without a use of it.
func TestGrantCountsResumedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Store: new(Memory), Bridge: "b1"})
		first := asks(t.Context(), b, question(1, remembered))
		shown := only(t, b, "r1")
		covered := asks(t.Context(), b, question(2, remembered))
		settle(t, b, shown, Verdict{Approve: true, Scope: RunScope, Count: 2, By: "ann"})
		wantAnswer(t, first, "yes")
		b.Uses().Counts(wantAnswer(t, covered, "yes").verdict.Use)
		b.Suspend("r1")
		stillAsks(t, asks(t.Context(), b, question(2, remembered, func(r *Request) { r.Again = true })))
		b.EndRun("r1")
	})
}

// The use of a call that left before its question was answered is given back.
func TestUseOfACallThatLeft(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first := asks(t.Context(), b, question(1, remembered))
		shown := only(t, b, "r1")
		ctx, cancel := context.WithCancel(t.Context())
		left, stays := asks(ctx, b, question(2, remembered, onLine(4))), asks(t.Context(), b, question(3, remembered, onLine(4)))
		cancel()
		wantAnswer(t, left, Expired)
		settle(t, b, shown, Verdict{Approve: true, Scope: RunScope, Count: 3, By: "ann"})
		wantAnswer(t, first, "yes")
		b.Uses().Counts(wantAnswer(t, stays, "yes").verdict.Use)
		sends(t, b, question(4, remembered))
	})
}

// A yes that the store does not take is none, also if it is a grant's.
func TestCoveredCallThatCannotBeWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fillingStore{new(Memory), 2} // the answer, and that it has become a grant
		b := New(Options{Store: store})
		first := asks(t.Context(), b, question(1, remembered))
		shown := only(t, b, "r1")
		covered := asks(t.Context(), b, question(2, remembered))
		stillAsks(t, covered)
		settle(t, b, shown, Verdict{Approve: true, Scope: RunScope, Count: 20, By: "ann"})
		wantAnswer(t, first, "yes")
		a := wantAnswer(t, covered, AuditUnavailable)
		if all := grants(t, b); a.verdict.Use != (Use{}) || len(all) != 1 || b.questions.grants.reserved[all[0].ID] != 0 {
			t.Errorf("answered %+v, with %v reserved of %+v", a.verdict, b.questions.grants.reserved, all)
		}
		b.EndRun("r1")
	})
}
