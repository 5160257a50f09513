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

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

const (
	instant = time.Nanosecond // the least that there is
	second  = time.Second
	minute  = time.Minute
	patient = 5 * minute // the time to answer, unless a test says otherwise
)

// question is a request about one call of run r1, session s1, as the changes
// have it. The tool has changed, so that it makes no request with others unless they
// come from the same place of the script.
func question(call int, changes ...func(*Request)) Request {
	args, err := canon.Parse(fmt.Appendf(nil, `{"n":%d}`, call))
	if err != nil {
		panic(err)
	}
	r := Request{
		Run: "r1", Server: "fs", Tool: "delete", Script: "fs__delete", Difference: []string{"+ a change"},
		Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Timeout: patient, Revision: "rev1"},
		Items: []Item{{
			Call: call, Shown: canon.Display(args, canon.DisplayOptions{}),
			Key: Key{Session: "s1", Server: "fs", Tool: "delete", Definition: "def1", Revision: "rev1", Args: args.Digest()},
		}},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func ordinary(r *Request)                    { r.Difference = nil }
func inRun(run string) func(*Request)        { return func(r *Request) { r.Run = run } }
func inSession(s string) func(*Request)      { return func(r *Request) { r.Items[0].Key.Session = s } }
func risk(risk profiles.Risk) func(*Request) { return func(r *Request) { r.Decision.Risk = risk } }
func within(d time.Duration) func(*Request)  { return func(r *Request) { r.Decision.Timeout = d } }
func remembered(r *Request) {
	r.Decision.Remember = true
	for i := range r.Items {
		r.Items[i].Cover = Cover{Kind: "delete", Bound: []Bound{{"path", Exact, "/a"}}, Free: []string{"n"}}
	}
}
func onLine(n int) func(*Request) {
	return func(r *Request) { r.Items[0].Position = analysis.Position{Line: n, Column: 3} }
}

// an answer is what an Ask comes back with.
type answer struct {
	verdict Verdict
	err     error
	took    time.Duration
}

// asks runs Ask in the background until it blocks or is answered.
func asks(ctx context.Context, b *Broker, r Request) <-chan answer {
	c := make(chan answer, 1)
	start := time.Now()
	go func() {
		v, err := b.Ask(ctx, r)
		c <- answer{v, err, time.Since(start)}
	}()
	synctest.Wait()
	return c
}

// answered returns the answer that has come, or fails the test.
func answered(t *testing.T, c <-chan answer) answer {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		return a
	default:
		t.Helper()
		t.Fatal("Ask has not returned")
		return answer{}
	}
}

func stillAsks(t *testing.T, c <-chan answer) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		t.Fatalf("Ask returned %+v", a)
	default:
	}
}

// reasonOf is the reason of a no, or "yes".
func reasonOf(v Verdict) Reason {
	if v.Approve {
		return "yes"
	}
	return v.Reason
}

func wantAnswer(t *testing.T, c <-chan answer, want Reason) answer {
	t.Helper()
	a := answered(t, c)
	if got := reasonOf(a.verdict); got != want {
		t.Fatalf("answered %s, want %s (%+v)", got, want, a)
	}
	return a
}

// only returns the run's one question.
func only(t *testing.T, b *Broker, run string) Request {
	t.Helper()
	synctest.Wait()
	all := b.Take(run)
	if len(all) != 1 {
		t.Fatalf("%d questions are open, want 1: %+v", len(all), all)
	}
	return all[0]
}

func settle(t *testing.T, b *Broker, r Request, v Verdict) {
	t.Helper()
	if _, err := b.Settle(t.Context(), r.ID, r.Digest(), v); err != nil {
		t.Fatalf("settling %s: %v", r.ID, err)
	}
}

// tooLate brings a verdict to a request that is settled, and returns the one
// that came first.
func tooLate(t *testing.T, b *Broker, r Request, v Verdict) Verdict {
	t.Helper()
	var settled *SettledError
	if _, err := b.Settle(t.Context(), r.ID, r.Digest(), v); !errors.As(err, &settled) {
		t.Fatalf("settling %s once more: %v", r.ID, err)
	}
	return settled.Verdict
}

var (
	yes = Verdict{Approve: true, Scope: Once, By: "ann", Channel: "elicitation"}
	no  = Verdict{Reason: ElicitationDeclined, By: "ann", Channel: "elicitation"}
)

// queued is the id of the request that waits its turn.
func queued(b *Broker) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions.queue[0].request.ID // which is none yet
}

// grants are the broker's grants.
func grants(t *testing.T, b *Broker) []Grant {
	t.Helper()
	all, err := b.Grants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// empty checks that a broker whose runs and sessions have ended holds nothing.
func empty(t *testing.T, b *Broker) {
	t.Helper()
	grants := grants(t, b)
	unsettled, err := b.Requests(t.Context(), Filter{Open: time.Now()})
	if err != nil || len(unsettled) > 0 {
		t.Errorf("the store still asks %+v, %v", unsettled, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.questions.open)+len(b.questions.queue)+len(grants)+len(b.questions.limiter.asked)+len(b.questions.limiter.denied)+len(b.questions.limiter.refusals)+len(b.questions.limiter.cooldowns)+len(b.questions.limiter.lists)+len(b.questions.watchers) > 0 {
		t.Errorf("left behind: open %v, waiting %v, grants %v, asked %v, denied %v, refusals %v, cooldowns %v, watchers %v",
			b.questions.open, b.questions.queue, grants, b.questions.limiter.asked, b.questions.limiter.denied, b.questions.limiter.refusals, b.questions.limiter.cooldowns, b.questions.watchers)
	}
}

// bubble runs a test under a fake clock with a new broker, and checks that
// the broker is empty when everything has ended.
func bubble(t *testing.T, l Limits, test func(t *testing.T, b *Broker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Limits: l})
		test(t, b)
		for i := range 10 {
			b.EndRun(fmt.Sprintf("r%d", i))
		}
		for i := range 10 {
			b.EndSession(fmt.Sprintf("s%d", i))
		}
		synctest.Wait()
		empty(t, b)
	})
}

func TestAnswerReachesTheCall(t *testing.T) {
	for _, v := range []Verdict{yes, no, {Reason: NoApprover}} {
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			c := asks(t.Context(), b, question(1))
			time.Sleep(7 * second)
			q := only(t, b, "r1")
			settle(t, b, q, v)
			a := answered(t, c)
			want := v
			want.Request, want.Time = q.ID, time.Now()
			if diff := cmp.Diff(want, a.verdict); diff != "" {
				t.Errorf("the verdict (-want +got):\n%s", diff)
			}
			if a.err != nil || a.took != 7*second {
				t.Errorf("after %v: %v", a.took, a.err)
			}
		})
	}
}

func TestSilenceIsNoExactlyAtTheTimeout(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, within(90*second)))
		q := only(t, b, "r1")
		if got := q.Until.Sub(q.Asked); got != 90*second || !q.Asked.Equal(time.Now()) {
			t.Errorf("asked at %v, %v to answer", q.Asked, got)
		}
		time.Sleep(90*second - instant)
		stillAsks(t, c)
		time.Sleep(instant)
		if a := wantAnswer(t, c, Timeout); a.took != 90*second || a.verdict.Channel != "timeout" || a.verdict.By != "" {
			t.Errorf("got %+v", a)
		}
		if lost := tooLate(t, b, q, yes); lost.Reason != Timeout {
			t.Errorf("a yes after the time-out lost to %+v", lost)
		}
	})
}

// A yes at the very moment of the time-out must lose, whoever gets the lock
// first: here it is the verdict.
func TestYesAtTheMomentOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		r := question(1, within(second))
		b.mu.Lock()
		w := b.questions.wait(r) // nobody waits for it, so no timer expires it
		b.questions.gathered(w, -1)
		b.mu.Unlock()
		o := w.question
		time.Sleep(second)
		if lost := tooLate(t, b, o.request, yes); lost.Reason != Timeout {
			t.Errorf("it lost to %+v", lost)
		}
		<-o.settled
		if o.verdict.Approve || o.verdict.Reason != Timeout {
			t.Errorf("settled with %+v", o.verdict)
		}
	})
}

// The store keeps times of the clock on the wall, which may jump; the broker
// waits by one that does not. Whichever says that the time is over, it is.
func TestClockJumps(t *testing.T) {
	jump := func(t *testing.T, b *Broker, q Request, by time.Duration) {
		t.Helper()
		_, err := b.store.Update(t.Context(), q.ID, func(e *StoredRequest) error {
			e.Until = e.Until.Add(-by) // the same as a clock that is that much further on
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, within(minute)))
		q := only(t, b, "r1")
		jump(t, b, q, 24*time.Hour)
		if lost := tooLate(t, b, q, yes); lost.Reason != Timeout {
			t.Errorf("a yes a day later lost to %+v", lost)
		}
		wantAnswer(t, c, Timeout)
	})
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, within(minute)))
		q := only(t, b, "r1")
		jump(t, b, q, -24*time.Hour)
		time.Sleep(minute)
		if a := wantAnswer(t, c, Timeout); a.took != minute {
			t.Errorf("it waited %v", a.took)
		}
		tooLate(t, b, q, yes)
	})
}

func TestQueueKeepsItsOrderAndItsTime(t *testing.T) {
	bubble(t, Limits{PerRun: 2}, func(t *testing.T, b *Broker) {
		var cs []<-chan answer
		for i := 1; i <= 5; i++ {
			cs = append(cs, asks(t.Context(), b, question(i)))
		}
		calls := func() string {
			var all []string
			for _, q := range b.Take("r1") {
				all = append(all, fmt.Sprint(q.Items[0].Call))
			}
			return strings.Join(all, " ")
		}
		if got := calls(); got != "1 2" || b.Waiting("r1") != 5 {
			t.Fatalf("open are %s, %d wait", got, b.Waiting("r1"))
		}
		time.Sleep(4 * minute)
		settle(t, b, b.Take("r1")[1], yes)
		wantAnswer(t, cs[1], "yes")
		if got := calls(); got != "1 3" {
			t.Fatalf("open are %s", got)
		}
		time.Sleep(minute) // 1 runs out; 3 has four minutes left; 4 has its turn
		wantAnswer(t, cs[0], Timeout)
		if got := calls(); got != "3 4" {
			t.Fatalf("open are %s", got)
		}
		time.Sleep(4*minute - instant)
		stillAsks(t, cs[2])
		time.Sleep(instant)
		if a := wantAnswer(t, cs[2], Timeout); a.took != 9*minute {
			t.Errorf("the third was answered after %v, want its five minutes from its turn", a.took)
		}
		stillAsks(t, cs[4])
		settle(t, b, b.Take("r1")[1], no)
		wantAnswer(t, cs[4], ElicitationDeclined)
		wantAnswer(t, asks(t.Context(), b, question(5)), ElicitationDeclined)
		time.Sleep(minute)
		wantAnswer(t, cs[3], Timeout)
	})
}

// Calls of one run come here in any order: each has a goroutine of its own.
func TestQueueIsInTheOrderOfTheCalls(t *testing.T) {
	bubble(t, Limits{PerRun: 1}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		asks(ctx, b, question(9))
		asks(ctx, b, question(4))
		asks(ctx, b, question(1, inRun("r2")))
		asks(ctx, b, question(2, inRun("r2")))
		asks(ctx, b, question(3))
		asks(ctx, b, question(5))
		var got []int
		for range 4 {
			got = append(got, b.Take("r1")[0].Items[0].Call)
			settle(t, b, b.Take("r1")[0], yes)
		}
		if want := []int{9, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("asked were %v, want %v", got, want)
		}
		cancel()
		synctest.Wait()
	})
}

func TestRefusedInsteadOfQueued(t *testing.T) {
	bubble(t, Limits{PerRun: 2, Refuse: true}, func(t *testing.T, b *Broker) {
		first, second := asks(t.Context(), b, question(1)), asks(t.Context(), b, question(2))
		asks(t.Context(), b, question(1)) // the same call shares the question that is open
		wantAnswer(t, asks(t.Context(), b, question(3)), RateLimited)
		if v, known, err := b.Precheck(t.Context(), question(3)); !known || v.Reason != RateLimited || err != nil {
			t.Errorf("it is not known before anything is recorded: %+v, %v, %v", v, known, err)
		}
		settle(t, b, b.Take("r1")[0], yes)
		wantAnswer(t, first, "yes")
		third := asks(t.Context(), b, question(3))
		stillAsks(t, third)
		for _, q := range b.Take("r1") {
			settle(t, b, q, yes)
		}
		wantAnswer(t, second, "yes")
		wantAnswer(t, third, "yes")
	})
}

func TestBoundsOfOpenQuestions(t *testing.T) {
	bubble(t, Limits{Budget: 1000}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		open := func(run string) int { return len(b.Take(run)) }
		for run := 1; run <= 5; run++ {
			for call := 1; call <= 6; call++ {
				asks(ctx, b, question(call, inRun(fmt.Sprintf("r%d", run))))
			}
		}
		for run, want := range map[string]int{"r1": 5, "r2": 5, "r3": 5, "r4": 5, "r5": 0} {
			if got := open(run); got != want {
				t.Errorf("%s has %d open questions, want %d", run, got, want)
			}
		}
		asks(ctx, b, question(1, inRun("r6"), inSession("s2")))
		if got := open("r6"); got != 1 {
			t.Errorf("another session has %d open questions, want 1", got)
		}
		settle(t, b, b.Take("r1")[0], yes)
		if got := open("r1"); got != 5 { // the sixth of r1 came before those of r5
			t.Errorf("r1 has %d open questions, want 5", got)
		}
		cancel()
		synctest.Wait()
	})
	bubble(t, Limits{PerRun: 1000, PerSession: 1000, Budget: 1000}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		for call := range 201 {
			asks(ctx, b, question(call))
		}
		if got := len(b.Take("r1")); got != 200 {
			t.Errorf("%d open questions in all, want 200", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestWithdrawnCalls(t *testing.T) {
	why := errors.New("pressed stop")
	bubble(t, Limits{PerRun: 1}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := asks(ctx, b, question(1)), asks(t.Context(), b, question(2))
		q := only(t, b, "r1")
		cancel(why)
		if a := wantAnswer(t, first, Expired); !errors.Is(a.err, why) {
			t.Errorf("error %v", a.err)
		}
		if lost := tooLate(t, b, q, yes); lost.Reason != Expired {
			t.Errorf("a yes to a withdrawn call lost to %+v", lost)
		}
		settle(t, b, only(t, b, "r1"), yes) // its turn has come
		wantAnswer(t, second, "yes")

		// One that is withdrawn before its turn leaves the queue, and one that
		// is withdrawn before it is asked is never seen.
		third := asks(t.Context(), b, question(3))
		ctx, cancel = context.WithCancelCause(t.Context())
		fourth := asks(ctx, b, question(4))
		cancel(why)
		wantAnswer(t, fourth, Expired)
		if a := wantAnswer(t, asks(ctx, b, question(5)), Expired); !errors.Is(a.err, why) {
			t.Errorf("error %v", a.err)
		}
		if n := b.Waiting("r1"); n != 1 || len(b.questions.queue) != 0 {
			t.Errorf("%d wait, queue %v", n, b.questions.queue)
		}
		b.EndRun("r1")
		wantAnswer(t, third, Expired)
	})
}

// A question whose run is stopped says who stopped it; one whose run ends in
// another way does not.
func TestStoppedRunSaysWhoStoppedIt(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		call := 0
		for why, want := range map[error]string{
			&StoppedError{By: "ann"}: "ann",
			fmt.Errorf("ending: %w", &StoppedError{By: "the client", Why: "it cancelled"}): "the client",
			errors.New("it expired"): "",
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			call++
			c := asks(ctx, b, question(call))
			q := only(t, b, "r1")
			cancel(why)
			if a := wantAnswer(t, c, Expired); a.verdict.Stopped != want {
				t.Errorf("%v: the call is answered %+v", why, a.verdict)
			}
			if kept := tooLate(t, b, q, yes); kept.Reason != Expired || kept.Stopped != want || kept.By != "" {
				t.Errorf("%v: kept is %+v", why, kept)
			}
		}
	})
	late := &SettledError{Verdict{Reason: Expired, Channel: "run", Stopped: "ann", Time: time.Date(2026, 3, 1, 14, 2, 3, 0, time.UTC)}}
	if got := late.Error(); got != "it was settled before: ann stopped the run at 14:02:03" {
		t.Errorf("who comes too late is told %q", got)
	}
}

func TestIdenticalCallsShareAQuestion(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		ctx, cancel := context.WithCancel(t.Context())
		first := asks(ctx, b, question(1))
		time.Sleep(minute)
		second := asks(t.Context(), b, question(1))
		q := only(t, b, "r1")
		if b.Waiting("r1") != 2 || len(q.Items) != 2 || time.Until(q.Until) != 4*minute {
			t.Errorf("%d wait, %+v", b.Waiting("r1"), q)
		}
		third := asks(t.Context(), b, question(1)) // a yes covers what was shown
		if all := b.Take("r1"); len(all) != 2 {
			t.Errorf("%d questions are open, want 2", len(all))
		}
		cancel() // the one that asked first goes; the other keeps the question and its time
		wantAnswer(t, first, Expired)
		time.Sleep(4*minute - instant)
		stillAsks(t, second)
		time.Sleep(instant)
		wantAnswer(t, second, Timeout)
		stillAsks(t, third)
		b.EndRun("r1")
	})
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		first, second := asks(t.Context(), b, question(1)), asks(t.Context(), b, question(1))
		settle(t, b, only(t, b, "r1"), yes)
		wantAnswer(t, first, "yes")
		wantAnswer(t, second, "yes")
	})
}

// What differs in anything that a person would judge by is another question.
func TestOtherCallsDoNotShareAQuestion(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"run":        inRun("r2"),
		"session":    inSession("s2"),
		"profile":    func(r *Request) { r.Items[0].Key.Profile = "other" },
		"server":     func(r *Request) { r.Items[0].Key.Server = "other" },
		"tool":       func(r *Request) { r.Items[0].Key.Tool = "other" },
		"definition": func(r *Request) { r.Items[0].Key.Definition = "def2" },
		"policy":     func(r *Request) { r.Items[0].Key.Revision = "rev2" },
		"arguments":  func(r *Request) { r.Items[0].Key.Args[0] ^= 1 },
		"risk":       risk(profiles.Critical),
		"reasons":    func(r *Request) { r.Decision.Reasons = []profiles.Reason{{Detail: "because"}} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				first, second := asks(t.Context(), b, question(1)), asks(t.Context(), b, question(1, change))
				q := b.Take("r1")[0]
				time.Sleep(minReadTime) // one of them is critical
				settle(t, b, q, yes)
				answers := 0
				for _, c := range []<-chan answer{first, second} {
					synctest.Wait()
					answers += len(c)
				}
				if answers != 1 {
					t.Errorf("one yes answered %d calls", answers)
				}
				b.EndRun("r1")
				b.EndRun("r2")
			})
		})
	}
}

func TestCallsOfALoopFoldUntilTheyAreSeen(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		var cs []<-chan answer
		for _, call := range []int{2, 1, 3} {
			cs = append(cs, asks(t.Context(), b, question(call, onLine(4))))
		}
		elsewhere := asks(t.Context(), b, question(4, onLine(5)))
		unplaced := []<-chan answer{asks(t.Context(), b, question(5)), asks(t.Context(), b, question(6))}
		all := b.Take("r1")
		if len(all) != 4 || len(all[0].Items) != 3 {
			t.Fatalf("%d questions: %+v", len(all), all)
		}
		for i, item := range all[0].Items {
			if item.Call != i+1 {
				t.Errorf("item %d is call %d", i, item.Call)
			}
		}
		late := asks(t.Context(), b, question(7, onLine(4)))
		if again := b.Take("r1"); len(again[0].Items) != 3 || again[0].Digest() != all[0].Digest() {
			t.Errorf("a question changed after it was seen: %+v", again[0])
		}
		settle(t, b, all[0], yes)
		for _, c := range cs {
			wantAnswer(t, c, "yes")
		}
		for _, c := range append(unplaced, elsewhere, late) {
			stillAsks(t, c)
		}
		b.EndRun("r1")
	})
}

func TestVerdictsThatSettleNothing(t *testing.T) {
	bubble(t, Limits{PerRun: 2}, func(t *testing.T, b *Broker) {
		first, second, third := asks(t.Context(), b, question(1)), asks(t.Context(), b, question(2)), asks(t.Context(), b, question(3))
		all := b.Take("r1")
		flipped := all[0].Digest()
		flipped[31] ^= 1
		for name, row := range map[string]struct {
			id    string
			about canon.Digest
			v     Verdict
			want  error
		}{
			"no such request":    {"q99", all[0].Digest(), yes, ErrUnknown},
			"no id":              {"", all[0].Digest(), yes, ErrUnknown},
			"not its turn":       {queued(b), question(3).Digest(), yes, ErrUnknown},
			"another's digest":   {all[0].ID, all[1].Digest(), yes, ErrDigest},
			"no digest":          {all[0].ID, canon.Digest{}, yes, ErrDigest},
			"a flipped bit":      {all[0].ID, flipped, yes, ErrDigest},
			"a no for others":    {all[0].ID, flipped, no, ErrDigest},
			"a no for no reason": {all[0].ID, all[0].Digest(), Verdict{}, nil},
		} {
			if _, err := b.Settle(t.Context(), row.id, row.about, row.v); err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, c := range []<-chan answer{first, second, third} {
			stillAsks(t, c)
		}
		settle(t, b, all[0], no)
		if lost := tooLate(t, b, all[0], yes); lost.By != "ann" || lost.Reason != ElicitationDeclined || lost.Time.IsZero() {
			t.Errorf("the second verdict lost to %+v", lost)
		}
		if _, err := b.Settle(t.Context(), all[0].ID, flipped, yes); !errors.Is(err, ErrDigest) {
			t.Errorf("one who does not know what it was about hears %v", err)
		}
		wantAnswer(t, first, ElicitationDeclined)
		b.EndRun("r1")
	})
}

// A request has another digest when anything is other that a yes would cover.
func TestDigestCoversEveryCall(t *testing.T) {
	three := func() Request {
		r := question(1)
		r.Items = append(r.Items, question(2).Items[0], question(3, remembered).Items[0])
		r.Items[2].Cover.Bound = []Bound{{"path", Exact, strings.Repeat("a", maxBoundShown) + "b"}}
		return r
	}
	want := three().Digest()
	if got := three().Digest(); got != want {
		t.Fatal("the digest is not of the request alone")
	}
	for name, change := range map[string]func(*Request){
		"one call fewer":        func(r *Request) { r.Items = r.Items[:2] },
		"in another order":      func(r *Request) { r.Items[1], r.Items[2] = r.Items[2], r.Items[1] },
		"the last one's number": func(r *Request) { r.Items[2].Call++ },
		"session":               func(r *Request) { r.Items[2].Key.Session = "s2" },
		"profile":               func(r *Request) { r.Items[2].Key.Profile = "other" },
		"server":                func(r *Request) { r.Items[2].Key.Server = "other" },
		"tool":                  func(r *Request) { r.Items[2].Key.Tool = "other" },
		"definition":            func(r *Request) { r.Items[2].Key.Definition = "def2" },
		"policy":                func(r *Request) { r.Items[2].Key.Revision = "rev2" },
		"arguments":             func(r *Request) { r.Items[2].Key.Args[31] ^= 1 },
		"a bound":               func(r *Request) { r.Items[2].Cover.Bound[0].Value = strings.Repeat("a", maxBoundShown) + "c" },
		"the kind of a bound":   func(r *Request) { r.Items[2].Cover.Bound[0].Kind = Mentions },
		"what is free":          func(r *Request) { r.Items[2].Cover.Free = []string{"m"} },
		"at other servers":      func(r *Request) { r.Items[2].Cover.Shared = true },
		"for a session":         func(r *Request) { r.Items[2].Cover.RunOnly = true },
		"where names end":       func(r *Request) { r.Items[2].Key.Server, r.Items[2].Key.Tool = `fs" "delete`, "" },
	} {
		r := three()
		change(&r)
		if r.Digest() == want {
			t.Errorf("%s: the same digest", name)
		}
	}
}

func TestWhatAVerdictMayBe(t *testing.T) {
	plain := question(1)
	critical := question(1, func(r *Request) { r.Decision.RequireReason = true })
	for _, row := range []struct {
		name string
		r    Request
		v    Verdict
		ok   bool
	}{
		{"yes", plain, Verdict{Approve: true}, true},
		{"yes, once", plain, yes, true},
		{"yes, for a scope that there is not", plain, Verdict{Approve: true, Scope: "forever"}, false},
		{"yes, for the session, where it may not be remembered", plain, Verdict{Approve: true, Scope: SessionScope}, false},
		{"yes, for any arguments, where it may not be remembered", plain, Verdict{Approve: true, Scope: AnyArgs}, false},
		{"yes, for the session", question(1, remembered), Verdict{Approve: true, Scope: SessionScope}, true},
		{"yes, for any arguments, which is not offered any more", question(1, remembered), Verdict{Approve: true, Scope: AnyArgs}, false},
		{"yes, for the session, to a call that has no cover", question(1, func(r *Request) { r.Decision.Remember = true }), Verdict{Approve: true, Scope: SessionScope}, false},
		{"yes, for this run, twenty times", question(1, remembered), Verdict{Approve: true, Scope: RunScope, Count: 20}, true},
		{"yes, for this run, however often", question(1, remembered), Verdict{Approve: true, Scope: RunScope}, false},
		{"yes, for this run, too often", question(1, remembered), Verdict{Approve: true, Scope: RunScope, Count: MaxCount + 1}, false},
		{"yes, for this run, more often than it may call", question(1, remembered, func(r *Request) { r.MostCalls = 50 }), Verdict{Approve: true, Scope: RunScope, Count: 51}, false},
		{"yes, for this run, as often as it may call", question(1, remembered, func(r *Request) { r.MostCalls = 50 }), Verdict{Approve: true, Scope: RunScope, Count: 50}, true},
		{"yes, for this run, where it may not be remembered", plain, Verdict{Approve: true, Scope: RunScope, Count: 20}, false},
		{"yes, once, and a number", question(1, remembered), Verdict{Approve: true, Scope: Once, Count: 20}, false},
		{"yes, without the reason it needs", critical, yes, false},
		{"yes, with blanks for a reason", critical, Verdict{Approve: true, Text: " \n\t"}, false},
		{"yes, with a reason", critical, Verdict{Approve: true, Text: "ticket 7"}, true},
		{"yes, where the name must be typed", question(1, func(r *Request) { r.Decision.Manual = true }), yes, false},
		{"yes, of one where several must agree", question(1, func(r *Request) { r.Decision.Quorums = make([]profiles.Quorum, 1) }), yes, false},
		{"no", critical, no, true},
		{"no, without a reason", plain, Verdict{}, false},
	} {
		if err := row.v.Valid(row.r, time.Now()); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestRefusedCallIsNotAskedAgainInItsRun(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1))
		settle(t, b, only(t, b, "r1"), Verdict{Reason: ElicitationDeclined, Text: "not today"})
		wantAnswer(t, c, ElicitationDeclined)
		if a := wantAnswer(t, asks(t.Context(), b, question(1)), ElicitationDeclined); a.verdict.Text != "not today" {
			t.Errorf("the second time: %+v", a.verdict)
		}
		for _, other := range []Request{question(2), question(1, inRun("r2"))} {
			c := asks(t.Context(), b, other)
			settle(t, b, only(t, b, other.Run), yes)
			wantAnswer(t, c, "yes")
		}
		b.EndRun("r1")
		stillAsks(t, asks(t.Context(), b, question(1))) // a run of that name begins anew
	})
}

// When nobody was reached, nobody said no.
func TestUnreachedPersonIsAskedAgain(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		for range 3 {
			c := asks(t.Context(), b, question(1))
			settle(t, b, only(t, b, "r1"), Verdict{Reason: NoApprover})
			wantAnswer(t, c, NoApprover)
		}
	})
}

func ofTool(tool string) func(*Request) {
	return func(r *Request) { r.Tool, r.Items[0].Key.Tool = tool, tool }
}

// The next question does not wait after a no, and a script that keeps
// asking is not asked for long.
func TestNoesEndTheAsking(t *testing.T) {
	closed := Verdict{Reason: NoApprover, Channel: "elicitation", Text: "the question was dismissed"}
	// asked counts what people are asked who say the same to all, and what is refused.
	asked := func(t *testing.T, b *Broker, say Verdict, all []<-chan answer) (questions, refused int) {
		for open := b.Take("r1"); len(open) > 0; open = b.Take("r1") {
			questions++
			settle(t, b, open[0], say)
			synctest.Wait()
		}
		for _, c := range all {
			if a := answered(t, c); a.verdict.Reason == RateLimited {
				refused++
			} else if a.verdict.Approve {
				t.Errorf("answered %+v", a)
			}
		}
		return questions, refused
	}
	tools := func(n int) string { return fmt.Sprintf("tool%d", n) }
	for name, script := range map[string]struct {
		limits   Limits
		tool     func(int) string
		together bool
		say      *Verdict // nil: no
		most     int
	}{
		"one tool, one call after the other":    {tool: func(int) string { return "delete" }, most: 3},
		"one tool, every dialog closed":         {tool: func(int) string { return "delete" }, say: &closed, most: 3},
		"other tools, every dialog closed":      {tool: tools, say: &closed, most: 5},
		"one tool, all at once":                 {tool: func(int) string { return "delete" }, together: true, most: 5},
		"other tools, one call after the other": {tool: tools, most: 5},
		"other tools, all at once":              {tool: tools, together: true, most: 5},
		"other tools, one open at a time":       {limits: Limits{PerRun: 1}, tool: tools, together: true, most: 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, script.limits, func(t *testing.T, b *Broker) {
				start, say := time.Now(), no
				if script.say != nil {
					say = *script.say
				}
				var all []<-chan answer
				questions := 0
				for call := range 40 {
					all = append(all, asks(t.Context(), b, question(call, ofTool(script.tool(call)))))
					if !script.together {
						n, _ := asked(t, b, say, nil)
						questions += n
					}
				}
				n, refused := asked(t, b, say, all)
				if questions += n; questions != script.most || refused != 40-questions {
					t.Errorf("people were asked %d times, want %d; %d calls were refused unasked", questions, script.most, refused)
				}
				if time.Since(start) > 0 {
					t.Errorf("a question waited %v", time.Since(start))
				}
				stillAsks(t, asks(t.Context(), b, question(1, inRun("r2")))) // another run's
			})
		})
	}
}

// A yes shows that somebody wants to be asked; the tool that was refused three
// times stays refused.
func TestYesGoesOnWithTheAsking(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		for call := range 12 {
			said := no
			if call%4 == 3 {
				said = yes
			}
			c := asks(t.Context(), b, question(call, ofTool(fmt.Sprintf("tool%d", call))))
			settle(t, b, only(t, b, "r1"), said)
			wantAnswer(t, c, reasonOf(said))
		}
		for call := range 3 {
			c := asks(t.Context(), b, question(20+call))
			settle(t, b, only(t, b, "r1"), no)
			wantAnswer(t, c, ElicitationDeclined)
		}
		c := asks(t.Context(), b, question(30, ofTool("other")))
		settle(t, b, only(t, b, "r1"), yes)
		wantAnswer(t, c, "yes")
		a := wantAnswer(t, asks(t.Context(), b, question(31)), RateLimited)
		if a.verdict.Text != "people were asked 3 times in vain for this tool in this script: its other calls are refused unasked" {
			t.Errorf("got %+v", a.verdict)
		}
	})
}

func TestFloodStopsTheRun(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, b *Broker, i int) answer{
		"the same call again and again": func(t *testing.T, b *Broker, i int) answer {
			c := asks(t.Context(), b, question(1))
			if i == 0 {
				settle(t, b, only(t, b, "r1"), no)
			}
			return answered(t, c)
		},
		"other calls, all refused by a person": func(t *testing.T, b *Broker, i int) answer {
			c := asks(t.Context(), b, question(i))
			for _, q := range b.Take("r1") {
				settle(t, b, q, no)
			}
			return answered(t, c)
		},
		"a client that never reaches anybody": func(t *testing.T, b *Broker, i int) answer {
			c := asks(t.Context(), b, question(1))
			settle(t, b, only(t, b, "r1"), Verdict{Reason: NoApprover})
			return answered(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				for i := range 50 {
					if a := ask(t, b, i); a.verdict.Approve || a.err != nil {
						t.Fatalf("refusal %d: %+v", i+1, a)
					}
				}
				if a := ask(t, b, 50); a.verdict.Approve || !errors.Is(a.err, ErrFlood) {
					t.Errorf("refusal 51: %+v", a)
				}
				stillAsks(t, asks(t.Context(), b, question(1, inRun("r2")))) // another run is not stopped
			})
		})
	}
}

// grant lets a person say yes for the session.
func grant(t *testing.T, b *Broker, r Request, scope Scope) {
	t.Helper()
	c := asks(t.Context(), b, r)
	v := Verdict{Approve: true, Scope: scope, By: "ann"}
	if scope == RunScope {
		v.Count = 20
	}
	settle(t, b, only(t, b, r.Run), v)
	wantAnswer(t, c, "yes")
}

// sends has a grant answer a call, which is then sent.
func sends(t *testing.T, b *Broker, r Request) {
	t.Helper()
	b.Uses().Counts(wantAnswer(t, asks(t.Context(), b, r), "yes").verdict.Use)
}

// A grant ends, is used up, is visible, and is never broader than
// it was shown.
func TestGrant(t *testing.T) {
	for name, row := range map[string]struct {
		scope   Scope
		change  func(*Request)
		covered bool
	}{
		"the same call":                  {SessionScope, func(*Request) {}, true},
		"in another run":                 {SessionScope, inRun("r2"), true},
		"in another session":             {SessionScope, inSession("s2"), false},
		"with other free arguments":      {SessionScope, func(r *Request) { r.Items[0].Key.Args[0] ^= 1 }, true},
		"with another bound argument":    {SessionScope, func(r *Request) { r.Items[0].Cover.Bound = []Bound{{"path", Exact, "/b"}} }, false},
		"a call that offers no cover":    {SessionScope, func(r *Request) { r.Items[0].Cover = Cover{} }, false},
		"another profile":                {SessionScope, func(r *Request) { r.Items[0].Key.Profile = "other" }, false},
		"another server":                 {SessionScope, func(r *Request) { r.Items[0].Key.Server = "other" }, false},
		"the server is another one":      {SessionScope, func(r *Request) { r.Items[0].Key.Identity = "other" }, false},
		"another tool":                   {SessionScope, func(r *Request) { r.Items[0].Key.Tool = "other" }, false},
		"the tool changed":               {SessionScope, func(r *Request) { r.Items[0].Key.Definition = "def2" }, false},
		"the policy":                     {SessionScope, func(r *Request) { r.Items[0].Key.Revision = "rev2" }, false},
		"what may not be remembered":     {SessionScope, func(r *Request) { r.Decision.Remember = false }, false},
		"what needs a reason":            {SessionScope, func(r *Request) { r.Decision.RequireReason = true }, false},
		"what needs the name typed":      {SessionScope, func(r *Request) { r.Decision.Manual = true }, false},
		"what several must allow":        {SessionScope, quorum(2, false), false},
		"what is critical":               {SessionScope, risk(profiles.Critical), false},
		"for the run":                    {RunScope, func(r *Request) { r.Items[0].Key.Args[0] ^= 1 }, true},
		"for the run, in another one":    {RunScope, inRun("r2"), false},
		"for the run, with another path": {RunScope, func(r *Request) { r.Items[0].Cover.Bound = []Bound{{"path", Exact, "/b"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				grant(t, b, question(1, remembered), row.scope)
				c := asks(t.Context(), b, question(1, remembered, row.change))
				if !row.covered {
					stillAsks(t, c)
					return
				}
				if a := wantAnswer(t, c, "yes"); a.verdict.Channel != "grant" || a.verdict.By != "ann" || a.verdict.Scope != Once {
					t.Errorf("got %+v", a.verdict)
				}
			})
		})
	}
}

func TestGrantOfAFold(t *testing.T) {
	elsewhere := func(r *Request) { r.Items[0].Cover.Bound = []Bound{{"path", Exact, "/b"}} }
	for name, row := range map[string]struct {
		yes   Verdict
		third func(*Request)
		want  []int // uses left, of each grant
	}{
		"once":                         {Verdict{Scope: Once}, remembered, nil},
		"for the session":              {Verdict{Scope: SessionScope}, remembered, []int{100}},
		"for the session, two kinds":   {Verdict{Scope: SessionScope}, elsewhere, []int{100}},
		"for the run":                  {Verdict{Scope: RunScope, Count: 20}, remembered, []int{17}},
		"for the run, these three":     {Verdict{Scope: RunScope, Count: 3}, remembered, nil},
		"for the run, two kinds of it": {Verdict{Scope: RunScope, Count: 20}, elsewhere, []int{17}},
	} {
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			for call := range 2 {
				asks(t.Context(), b, question(call, remembered, onLine(1)))
			}
			asks(t.Context(), b, question(2, remembered, onLine(1), row.third))
			row.yes.Approve = true
			settle(t, b, only(t, b, "r1"), row.yes)
			var got []int
			for _, g := range grants(t, b) {
				got = append(got, g.Left)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s: uses left (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestGrantEnds(t *testing.T) {
	r := question(1, remembered)
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		grant(t, b, r, SessionScope)
		g := grants(t, b)[0]
		if g.Until.Sub(g.Made) != time.Hour || g.Left != 100 || g.Uses != 100 || g.Key != r.Items[0].Key {
			t.Errorf("granted %+v", g)
		}
		time.Sleep(time.Hour - instant)
		wantAnswer(t, asks(t.Context(), b, r), "yes")
		time.Sleep(instant)
		stillAsks(t, asks(t.Context(), b, r))
		if left := grants(t, b); len(left) > 0 {
			t.Errorf("still there: %+v", left)
		}
	})
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		grant(t, b, r, SessionScope)
		for range 100 {
			sends(t, b, r)
		}
		stillAsks(t, asks(t.Context(), b, r))
	})
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		grant(t, b, r, SessionScope)
		b.EndRun("r1")
		b.EndSession("s2")
		wantAnswer(t, asks(t.Context(), b, r), "yes")
		b.EndSession("s1")
		stillAsks(t, asks(t.Context(), b, r))
	})
}

func TestWatchers(t *testing.T) {
	bubble(t, Limits{PerRun: 1}, func(t *testing.T, b *Broker) {
		changed, end := b.Watch("r1")
		again, endAgain := b.Watch("r1")
		other, endOther := b.Watch("r2")
		told := func(step string, want bool) {
			t.Helper()
			synctest.Wait()
			if len(changed) == 1 != want || len(again) == 1 != want {
				t.Errorf("%s: told %d and %d, want %v", step, len(changed), len(again), want)
			}
			for _, c := range []<-chan struct{}{changed, again} {
				if len(c) > 0 {
					<-c
				}
			}
			if len(other) > 0 {
				t.Errorf("%s: another run was told", step)
			}
		}
		told("nothing", false)
		asks(t.Context(), b, question(1, onLine(2)))
		told("a question", true)
		asks(t.Context(), b, question(2, onLine(2)))
		told("a second item", true)
		asks(t.Context(), b, question(3))
		told("one that waits its turn", false)
		settle(t, b, only(t, b, "r1"), yes)
		told("a verdict", true)
		asks(t.Context(), b, question(4))
		time.Sleep(patient)
		told("a time-out", true)
		end()
		endAgain()
		endOther()
		endOther() // twice is once
	})
}

func TestNoAnswerOutlivesItsRun(t *testing.T) {
	bubble(t, Limits{PerRun: 1}, func(t *testing.T, b *Broker) {
		open, queued, other := asks(t.Context(), b, question(1)), asks(t.Context(), b, question(2)), asks(t.Context(), b, question(1, inRun("r2")))
		q := only(t, b, "r1")
		b.EndRun("r1")
		wantAnswer(t, open, Expired)
		wantAnswer(t, queued, Expired)
		stillAsks(t, other)
		if lost := tooLate(t, b, q, yes); lost.Reason != Expired {
			t.Errorf("a verdict after the end lost to %+v", lost)
		}
		b.EndRun("r2")
		b.EndSession("s1")
		empty(t, b)
	})
}
