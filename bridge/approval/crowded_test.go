package approval

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// The questions that a requester may have open count at all bridges with one store
// together; not those of bridges that are gone, of paused runs, of others, and of other
// configurations.
func TestQuestionsOfARequesterAtAllBridges(t *testing.T) {
	of := func(who, run string) Request {
		return next(1, 1, func(r *Request) { r.Requester, r.Run, r.MostOpen = who, run, 2 })
	}
	for name, row := range map[string]struct {
		before func(one *Broker) // ann has two questions at one bridge
		gone   bool
		who    string
		config string
		want   Reason
	}{
		"two elsewhere":            {want: RateLimited},
		"one is answered":          {before: func(one *Broker) { settleAny(t, one, "r0") }},
		"one run is paused":        {before: func(one *Broker) { one.Suspend("r0") }},
		"the other bridge is gone": {gone: true},
		"somebody else":            {who: "bob"},
		"of another configuration": {config: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(Memory)
				ctx, cancel := context.WithCancel(t.Context())
				one := New(Options{Store: store, Bridge: "one", Configuration: row.config})
				two := New(Options{Store: store, Bridge: "two", Gone: func(string) bool { return row.gone }})
				var all []<-chan answer
				for i := range 2 {
					r := of("ann", fmt.Sprint("r", i))
					r.Items[0].Key.Configuration = row.config
					all = append(all, asks(ctx, one, r))
				}
				only(t, one, "r0")
				only(t, one, "r1")
				if row.before != nil {
					row.before(one)
				}
				who := row.who
				if who == "" {
					who = "ann"
				}
				mine := asks(ctx, two, of(who, "r2"))
				if row.want != "" {
					if got := answered(t, mine); reasonOf(got.verdict) != row.want {
						t.Errorf("it is %+v", got)
					}
				} else {
					only(t, two, "r2")
				}
				cancel()
				for _, c := range append(all, mine) {
					if row.want == "" || c != mine {
						<-c
					}
				}
			})
		})
	}
}

func settleAny(t *testing.T, b *Broker, run string) {
	t.Helper()
	settle(t, b, only(t, b, run), yes)
}

// A store that cannot be read refuses what would have to be counted.
func TestQuestionsThatCannotBeCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Store: unreadable{new(Memory)}, Bridge: "one"})
		r := next(1, 1, func(r *Request) { r.MostOpen = 1 })
		if got := answered(t, asks(t.Context(), b, r)); reasonOf(got.verdict) != AuditUnavailable || !errors.Is(got.err, errUnreadable) {
			t.Errorf("it is %+v", got)
		}
	})
}

type unreadable struct{ *Memory }

var errUnreadable = errors.New("the store cannot be read")

func (unreadable) Requests(context.Context, Filter) ([]StoredRequest, error) {
	return nil, errUnreadable
}
