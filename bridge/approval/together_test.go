package approval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/profiles"
)

// of is a change: the call is one of that tool, at that line of the script.
func of(tool string, line int) func(*Request) {
	return func(r *Request) {
		ordinary(r)
		onLine(line)(r)
		r.Tool, r.Items[0].Tool, r.Items[0].Key.Tool = tool, tool, tool
	}
}

// asked are the calls of the requests that people have, as "1 2 | 3".
func asked(b *Broker, run string) string {
	synctest.Wait()
	text := ""
	for i, q := range b.Take(run) {
		if i > 0 {
			text += " | "
		}
		for j, item := range q.Items {
			if j > 0 {
				text += " "
			}
			text += fmt.Sprint(item.Call)
		}
	}
	return text
}

// A script says when it can do nothing more.
type script struct {
	mu    sync.Mutex
	calls int
	moves chan struct{}
}

func (s *script) idle() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.moves
}

// idles says that so many calls wait.
func (s *script) idles(calls int) {
	s.mu.Lock()
	s.calls = calls
	close(s.moves)
	s.moves = make(chan struct{})
	s.mu.Unlock()
	synctest.Wait()
}

func TestWhatWaitsTogetherIsOneRequest(t *testing.T) {
	critical := func(r *Request) { r.Decision.Risk = profiles.Critical }
	manual := func(r *Request) { r.Decision.Manual = true }
	reason := func(r *Request) { r.Decision.RequireReason = true }
	quorum := func(r *Request) { r.Decision.Quorums = []profiles.Quorum{{Need: 2}} }
	queued := func(r *Request) { r.Decision.Fallback = profiles.FallbackQueue }
	changed := func(r *Request) { r.Difference = []string{"+ a change"} }
	many := func(from, to, line int) (all []Request) {
		for call := from; call <= to; call++ {
			at := line
			if line == 0 {
				at = call
			}
			all = append(all, question(call, of("a", at)))
		}
		return all
	}
	mixed := func(n int) []Request {
		all := many(1, n, 4)
		for i := range all {
			all[i].Decision.Reasons = []profiles.Reason{{Kind: profiles.KindRisk, Detail: fmt.Sprint("reason ", i)}}
		}
		return all
	}
	numbers := func(from, to int) string {
		text := fmt.Sprint(from)
		for call := from + 1; call <= to; call++ {
			text += fmt.Sprint(" ", call)
		}
		return text
	}
	for name, row := range map[string]struct {
		calls []Request // as they arrive
		want  string
	}{
		"five tools, in whatever order they come":      {[]Request{question(2, of("b", 2)), question(5, of("e", 5)), question(3, of("c", 3)), question(1, of("a", 1)), question(4, of("d", 4))}, "1 2 3 4 5"},
		"one is critical":                              {[]Request{question(1, of("a", 1)), question(2, of("b", 2), critical), question(3, of("c", 3))}, "1 3 | 2"},
		"one must be typed":                            {[]Request{question(1, of("a", 1), manual), question(2, of("b", 2)), question(3, of("c", 3))}, "1 | 2 3"},
		"one needs a reason":                           {[]Request{question(1, of("a", 1), reason), question(2, of("b", 2))}, "1 | 2"},
		"one needs several people":                     {[]Request{question(1, of("a", 1)), question(2, of("b", 2), quorum)}, "1 | 2"},
		"one has another fallback":                     {[]Request{question(1, of("a", 1)), question(2, of("b", 2), queued)}, "1 | 2"},
		"one tool has changed":                         {[]Request{question(1, of("a", 1)), question(2, of("b", 2), changed)}, "1 | 2"},
		"more places than a dialog shows":              {many(1, 12, 0), numbers(1, 10) + " | 11 12"},
		"a loop of 200":                                {many(1, 200, 4), numbers(1, 200)},
		"a loop with more reasons than a dialog shows": {mixed(12), numbers(1, 10) + " | 11 12"},
		"a loop of 200 and another call":               {append(many(2, 201, 4), question(1, of("b", 1))), numbers(1, 201)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				s := &script{moves: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				for _, r := range row.calls {
					r.Idle = s.idle
					asks(ctx, b, r)
				}
				if got := asked(b, "r1"); got != "" {
					t.Errorf("asked before the script was idle: %s", got)
				}
				s.idles(len(row.calls))
				if diff := cmp.Diff(row.want, asked(b, "r1")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A script that waits for one call is asked about at once; one that goes on without
// saying so, after a short time.
func TestWhenPeopleAreAsked(t *testing.T) {
	for name, row := range map[string]struct {
		idles int // calls that the script says it waits for; 0: it does not say
		every time.Duration
		want  time.Duration
	}{
		"one call":                            {1, 0, 0},
		"it goes on":                          {0, 0, gather},
		"a timer runs besides":                {2, 0, gather},
		"it goes on with one after the other": {0, gather - instant, gatherMost * gather},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				s := &script{calls: row.idles, moves: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				start, call := time.Now(), 0
				watch, end := b.Watch("r1")
				done := make(chan struct{})
				go func() {
					defer close(done)
					for {
						call++
						r := question(call, of("a", 1))
						r.Idle = s.idle
						go func() { _, _ = b.Ask(ctx, r) }()
						if row.every == 0 {
							return
						}
						select {
						case <-time.After(row.every):
						case <-ctx.Done():
							return
						}
					}
				}()
				<-watch
				if took := time.Since(start); took != row.want {
					t.Errorf("people were asked after %v, want %v", took, row.want)
				}
				cancel()
				<-done
				end()
				synctest.Wait()
			})
		})
	}
}

// The request says what its strictest call needs, and each call what it is itself.
func TestTogetherTheStrictest(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		asks(ctx, b, question(2, of("b", 2), risk(profiles.Medium), remembered, within(minute), func(r *Request) { r.Checks, r.ToolSays = []string{"b", "x"}, "b says" }))
		asks(ctx, b, question(1, of("a", 1), risk(profiles.Low), func(r *Request) { r.Checks, r.ToolSays = []string{"a", "x"}, "a says" }))
		q := only(t, b, "r1")
		type facts struct {
			Risk     profiles.Risk
			Remember bool
			Time     time.Duration
			Tool     string
			ToolSays string
			Checks   []string
			Each     []profiles.Risk
		}
		got := facts{q.Decision.Risk, q.Decision.Remember, q.Until.Sub(q.Asked), q.Tool, q.ToolSays, q.Checks, nil}
		for _, i := range q.Calls() {
			got.Each = append(got.Each, i.Decision.Risk)
		}
		want := facts{profiles.Medium, false, minute, "a", "a says", []string{"b", "x", "a"}, []profiles.Risk{profiles.Low, profiles.Medium}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		cancel()
		synctest.Wait()
	})
}

// A yes to some calls of a request sends those; the others are refused.
func TestYesToSomeOfSeveralTools(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first, second := asks(t.Context(), b, question(1, of("a", 1))), asks(t.Context(), b, question(2, of("b", 2)))
		settle(t, b, only(t, b, "r1"), Verdict{Approve: true, Scope: Once, Rows: []int{2}, By: "ann", Channel: "page"})
		wantAnswer(t, first, Declined)
		wantAnswer(t, second, "yes")
	})
}

// "No to every further call of this tool" is said once.
func TestNoMore(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, of("a", 1)))
		q := only(t, b, "r1")
		if q.Before != 0 {
			t.Errorf("%d questions before the first", q.Before)
		}
		settle(t, b, q, yes)
		wantAnswer(t, c, "yes")
		c = asks(t.Context(), b, question(2, of("a", 1)))
		waits := asks(t.Context(), b, question(3, of("b", 1)))
		if q = b.Take("r1")[0]; q.Before != 1 {
			t.Errorf("%d questions before the second", q.Before)
		}
		settle(t, b, q, Verdict{Reason: ElicitationDeclined, NoMore: true, Text: "enough", By: "ann", Channel: "elicitation"})
		wantAnswer(t, c, ElicitationDeclined)
		wantAnswer(t, waits, ElicitationDeclined) // of the same request
		for _, tool := range []string{"a", "b"} {
			if a := wantAnswer(t, asks(t.Context(), b, question(4, of(tool, 1))), ElicitationDeclined); a.verdict.Text != "enough" {
				t.Errorf("the next call of %s: %+v", tool, a.verdict)
			}
		}
		for _, other := range []Request{question(5, of("c", 1)), question(5, of("a", 1), inRun("r2"))} {
			c := asks(t.Context(), b, other)
			settle(t, b, only(t, b, other.Run), yes)
			wantAnswer(t, c, "yes")
		}
	})
}

// A run that is resumed remembers what people said before.
func TestNoesOutliveASuspension(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, of("a", 1)))
		settle(t, b, only(t, b, "r1"), Verdict{Reason: ElicitationDeclined, NoMore: true, By: "ann", Channel: "elicitation"})
		wantAnswer(t, c, ElicitationDeclined)
		b.Suspend("r1")
		again := question(2, of("a", 1))
		again.Again = true
		wantAnswer(t, asks(t.Context(), b, again), ElicitationDeclined)
	})
}

// At the end of the budget nothing is refused: one question asks how to go on.
func TestBudgetOfASession(t *testing.T) {
	goOn := yes
	list := yes
	list.List = true
	for name, row := range map[string]struct {
		say  Verdict
		then string // what is asked about calls 22, 23 and 24, one after the other
	}{
		"go on":     {goOn, "22 | 23 | 24"},
		"as a list": {list, "22"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				ctx, cancel := context.WithCancel(t.Context())
				for call := range 20 {
					c := asks(ctx, b, question(call+1, risk(profiles.Low)))
					q := only(t, b, "r1")
					if q.Spent != 0 {
						t.Fatalf("question %d says that the budget is spent", call+1)
					}
					settle(t, b, q, yes)
					wantAnswer(t, c, "yes")
				}
				c, waits := asks(ctx, b, question(21, risk(profiles.Low))), asks(ctx, b, question(21, risk(profiles.High), inRun("r2")))
				q := only(t, b, "r1")
				if q.Spent != 20 || len(b.Take("r2")) != 0 {
					t.Errorf("after %d questions people are asked %d more", q.Spent, 1+len(b.Take("r2")))
				}
				stillAsks(t, waits)
				settle(t, b, q, row.say)
				wantAnswer(t, c, "yes")
				settle(t, b, only(t, b, "r2"), yes)
				wantAnswer(t, waits, "yes")
				for call := 22; call <= 24; call++ {
					asks(ctx, b, question(call, of(fmt.Sprint("tool", call), call)))
					b.Take("r1")
				}
				if diff := cmp.Diff(row.then, asked(b, "r1")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if row.say.List { // the rest was collected meanwhile
					settle(t, b, b.Take("r1")[0], yes)
					if diff := cmp.Diff("23 24", asked(b, "r1")); diff != "" {
						t.Errorf("the list (-want +got):\n%s", diff)
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// Silence says nothing about how to go on, and the budget comes back with time.
func TestBudgetComesBack(t *testing.T) {
	bubble(t, Limits{Budget: 1}, func(t *testing.T, b *Broker) {
		spent := func(call int) int {
			c := asks(t.Context(), b, question(call))
			q := only(t, b, "r1")
			time.Sleep(patient)
			wantAnswer(t, c, Timeout)
			return q.Spent
		}
		got := []int{spent(1), spent(2), spent(3)}
		time.Sleep(10 * minute)
		got = append(got, spent(4))
		if want := []int{0, 1, 1, 0}; !slices.Equal(got, want) {
			t.Errorf("spent %v, want %v", got, want)
		}
	})
}
