package approval

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/profiles"
)

// Of the calls of a plan only those that waited forget what was read before: the others come after what people saw.
func TestPlannedCallsForgetNothing(t *testing.T) {
	r := next(1, 1, planning(next(0, 2)), func(r *Request) { r.Decision.Context = true })
	r.Items = append(r.Items, r.Plan...)
	r.Items[1].Call, r.Items[1].Planned = 2, true
	v := by("ann")
	v.Forget = true
	if one, planned := r.answers(v, 1), r.answers(v, 2); !one.Forget || planned.Forget || !planned.Approve {
		t.Errorf("%+v, %+v", one, planned)
	}
}

// planning is a change: the request plans these calls.
func planning(all ...Request) func(*Request) {
	return func(r *Request) {
		for _, one := range all {
			r.Plan = append(r.Plan, one.Calls()...)
		}
	}
}

// next is the call that a script makes at a line; the number is its arguments'.
func next(number, args int, changes ...func(*Request)) Request {
	r := question(args, append([]func(*Request){of("t", args)}, changes...)...)
	r.Items[0].Call = number
	return r
}

// A yes to a plan is for each of its calls, once, in order, as it was shown, for five
// minutes.
func TestPlan(t *testing.T) {
	type step struct {
		call Request
		want Reason // "asked": people are asked about it
	}
	critical := risk(profiles.Critical)
	read := func(r *Request) { // a server answered the same bytes meanwhile
		r.Items[0].Sources, r.Items[0].Reads = []string{"from elsewhere"}, []Read{{Param: "q", Characters: 9, Call: 1, From: "mail"}}
		r.Decision.Remember = false
		r.Decision.Reasons = append(slices.Clone(r.Decision.Reasons), profiles.Reason{Kind: profiles.KindRisk, Risk: r.Decision.Risk, Detail: "passes on what was read from mail"})
	}
	low := risk(profiles.Low)
	hidden := func(r *Request) { r.Decision.Hidden = map[string]string{"q": ""} }
	revised := func(r *Request) { r.Items[0].Key.Revision = "rev2" }
	to := func(folder string) func(*Request) {
		return func(r *Request) {
			r.Items[0].About.Facts = []Fact{{Param: "path", Role: "path", Leads: folder, Inside: true}}
		}
	}
	page := func(host, doubt string, isNew bool) func(*Request) {
		return func(r *Request) {
			r.Items[0].About.Facts = []Fact{{Param: "page", Role: "host", Leads: host, Doubt: doubt, New: isNew}}
		}
	}
	some := yes
	some.Rows = []int{1, 3}
	for name, row := range map[string]struct {
		plan   []Request
		say    Verdict
		shown  int // calls of the question
		after  time.Duration
		steps  []step
		unused int
	}{
		"all come":                 {[]Request{next(0, 2), next(0, 3)}, yes, 3, 0, []step{{next(2, 2), "yes"}, {next(3, 3), "yes"}}, 0},
		"each is used once":        {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2), "yes"}, {next(3, 2), "asked"}}, 0},
		"one is planned twice":     {[]Request{next(0, 2), next(0, 2)}, yes, 3, 0, []step{{next(2, 2), "yes"}, {next(3, 2), "yes"}, {next(4, 2), "asked"}}, 0},
		"one does not come":        {[]Request{next(0, 2), next(0, 3)}, yes, 3, 0, []step{{next(2, 3), "yes"}}, 1},
		"they come in disorder":    {[]Request{next(0, 2), next(0, 3)}, yes, 3, 0, []step{{next(2, 3), "yes"}, {next(3, 2), "asked"}}, 1},
		"in disorder, but at once": {[]Request{next(0, 2), next(0, 3)}, yes, 3, 0, []step{{next(3, 3), "yes"}, {next(2, 2), "yes"}}, 0},
		"other arguments":          {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 7), "asked"}}, 1},
		"a higher risk":            {[]Request{next(0, 2, low)}, yes, 2, 0, []step{{next(2, 2), "asked"}}, 1},
		"a lower risk":             {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2, low), "yes"}}, 0},
		"hidden otherwise":         {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2, hidden), "asked"}}, 1},
		"another policy":           {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2, revised), "asked"}}, 1},
		// These bytes were shown before that was read, so that they are not from there.
		"what stands elsewhere by then": {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2, read), "yes"}}, 0},
		"data from elsewhere":           {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 7, read), "asked"}}, 1},
		"data that policy minds":        {[]Request{next(0, 2, low)}, yes, 2, 0, []step{{next(2, 2, read), "asked"}}, 1},
		"in another run":                {[]Request{next(0, 2)}, yes, 2, 0, []step{{next(2, 2, inRun("r2")), "asked"}}, 1},
		"just in time":                  {[]Request{next(0, 2)}, yes, 2, PlanFor - instant, []step{{next(2, 2), "yes"}}, 0},
		"too late":                      {[]Request{next(0, 2)}, yes, 2, PlanFor, []step{{next(2, 2), "asked"}}, 1},
		"no to one":                     {[]Request{next(0, 2), next(0, 3)}, some, 3, 0, []step{{next(2, 2), Declined}, {next(3, 3), "yes"}, {next(4, 4), "asked"}}, 0},
		"no":                            {[]Request{next(0, 2)}, no, 2, 0, []step{{next(2, 2), ElicitationDeclined}, {next(3, 3), "asked"}}, 0},
		"a critical one":                {[]Request{next(0, 2, critical), next(0, 3)}, yes, 2, 0, []step{{next(2, 2, critical), "asked"}, {next(3, 3), "yes"}}, 0},
		"no more than a dialog shows":   {[]Request{next(0, 2), next(0, 3), next(0, 4), next(0, 5), next(0, 6), next(0, 7), next(0, 8), next(0, 9), next(0, 10), next(0, 11)}, yes, MaxPlaces, 0, []step{{next(2, 11), "asked"}}, 9},
		"it leads where it led":         {[]Request{next(0, 2, to("/a"))}, yes, 2, 0, []step{{next(2, 2, to("/a")), "yes"}}, 0},
		"it leads elsewhere":            {[]Request{next(0, 2, to("/a"))}, yes, 2, 0, []step{{next(2, 2, to("/b")), "asked"}}, 1},
		"on another page":               {[]Request{next(0, 2, page("a.example", "", true))}, yes, 2, 0, []step{{next(2, 2, page("b.example", "", false)), "asked"}}, 1},
		"on a page that is known now":   {[]Request{next(0, 2, page("", "nobody knows", true))}, yes, 2, 0, []step{{next(2, 2, page("b.example", "", false)), "yes"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				first := asks(t.Context(), b, next(1, 1, planning(row.plan...)))
				q := only(t, b, "r1")
				if len(q.Items) != row.shown {
					t.Fatalf("people see %d calls, want %d", len(q.Items), row.shown)
				}
				settle(t, b, q, row.say)
				answered(t, first)
				time.Sleep(row.after)
				for i, s := range row.steps {
					c := asks(t.Context(), b, s.call)
					if s.want == "asked" {
						stillAsks(t, c)
						time.Sleep(minReadTime)
						settle(t, b, only(t, b, s.call.Run), yes)
						s.want = "yes"
					}
					if got := reasonOf(answered(t, c).verdict); got != s.want {
						t.Errorf("step %d: %s, want %s", i+1, got, s.want)
					}
				}
				if got := len(b.Lapse("r1")); got != row.unused {
					t.Errorf("%d lapsed, want %d", got, row.unused)
				}
			})
		})
	}
}

// Calls that come before the answer wait for it, as what was planned; all others are
// asked about apart.
func TestPlannedCallsThatComeBeforeTheAnswer(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first := asks(t.Context(), b, next(1, 1, planning(next(0, 2), next(0, 3))))
		q := only(t, b, "r1")
		third, other := asks(t.Context(), b, next(3, 3)), asks(t.Context(), b, next(2, 9))
		if diff := cmp.Diff("1 2 3 | 2", asked(b, "r1")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		settle(t, b, q, Verdict{Approve: true, Scope: Once, Rows: []int{1, 2}, By: "ann", Channel: "page"})
		wantAnswer(t, first, "yes")
		wantAnswer(t, third, Declined)
		stillAsks(t, other)
		b.EndRun("r1")
	})
}

// What waits anyway is no plan, and a grant's call is not asked about.
func TestPlanOfWhatWaits(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		s := &script{moves: make(chan struct{})}
		for i := 1; i <= 2; i++ {
			r := next(i, i, planning(next(0, 3-i), next(0, 3)))
			r.Idle = s.idle
			asks(t.Context(), b, r)
		}
		s.idles(2)
		q := only(t, b, "r1")
		var got []string
		for _, i := range q.Items {
			got = append(got, fmt.Sprint(i.Call, i.Planned))
		}
		if diff := cmp.Diff([]string{"1 false", "2 false", "3 true"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.EndRun("r1")
	})
}

// A call that a grant covers is in a plan only if one of the calls before it may answer
// with what it then carries to somebody else: no grant covers that.
func TestPlanOfWhatAGrantCovers(t *testing.T) {
	at := func(r *Request) {
		r.Decision.Remember, r.Items[0].Decision.Remember = true, true
		r.Items[0].Cover = Cover{Kind: "fetch", Bound: []Bound{{"url", AtHost, "a.example"}}, Free: []string{"n"}}
	}
	here := func(r *Request) { at(r); r.Items[0].Cover = writing("/w") }
	other := func(r *Request) { r.Items[0].Server, r.Items[0].Tool, r.Items[0].Key.Server = "mail", "search", "mail" }
	writes := func(r *Request) { other(r); r.Items[0].About.Effects = []string{"write"} }
	reads := func(r *Request) { other(r); r.Items[0].About.Effects = []string{"read"} }
	carries := func(r *Request) {
		at(r)
		r.Decision.Remember, r.Items[0].Reads = false, []Read{{Param: "q", Call: 2, From: "mail"}}
	}
	for name, row := range map[string]struct {
		first, granted func(*Request)
		want           string
	}{
		"after one that may answer anything": {other, at, "2 3"},
		"after one that reads":               {reads, at, "2 3"},
		"after one that only writes":         {writes, at, "2"},
		"after one of its own server":        {of("t", 2), at, "2"},
		"what leaves nothing elsewhere":      {other, here, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				first := asks(t.Context(), b, next(1, 1, row.granted))
				settle(t, b, only(t, b, "r1"), Verdict{Approve: true, Scope: SessionScope, By: "ann", Channel: "page"})
				wantAnswer(t, first, "yes")
				second := asks(t.Context(), b, next(2, 2, row.first, planning(next(0, 3, row.granted))))
				if diff := cmp.Diff(row.want, asked(b, "r1")); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				settle(t, b, only(t, b, "r1"), yes)
				wantAnswer(t, second, "yes")
				if third := asks(t.Context(), b, next(3, 3, carries)); row.want == "2 3" {
					wantAnswer(t, third, "yes")
				} else {
					stillAsks(t, third)
				}
				b.EndRun("r1")
			})
		})
	}
}

// A call that is not planned joins no question with a plan, also if nobody has seen it:
// its number could be that of a planned call.
func TestNothingJoinsAPlan(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first := asks(t.Context(), b, next(1, 1, planning(next(0, 2))))
		other := asks(t.Context(), b, next(2, 7))
		all := b.Take("r1")
		if len(all) != 2 || len(all[0].Items) != 2 || len(all[1].Items) != 1 {
			t.Fatalf("asked are %+v", all)
		}
		settle(t, b, all[0], yes)
		wantAnswer(t, first, "yes")
		stillAsks(t, other)
		b.EndRun("r1")
	})
}

// A plan outlives a suspension, and what was used of it is not used again.
func TestPlanOfASuspendedRun(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		asks(t.Context(), b, next(1, 1, planning(next(0, 2), next(0, 3))))
		q := only(t, b, "r1")
		b.Suspend("r1")
		settle(t, b, q, yes)
		again := func(r Request) Request { // whose policy is the same, under another revision
			r.Again, r.Items[0].Key.Revision = true, "another"
			return r
		}
		for range 2 { // the second time the run goes on after its second call
			wantAnswer(t, asks(t.Context(), b, again(next(1, 1))), "yes")
			wantAnswer(t, asks(t.Context(), b, again(next(2, 2))), "yes")
			b.Suspend("r1")
			b.Lapse("r1")
		}
		wantAnswer(t, asks(t.Context(), b, again(next(2, 2))), "yes")
		stillAsks(t, asks(t.Context(), b, again(next(3, 2))))
		b.EndRun("r1")
	})
}
