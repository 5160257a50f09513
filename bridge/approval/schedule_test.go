package approval

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/profiles"
)

// Calls, verdicts, time-outs,
// cancellations and ends of runs in random orders. Every call is answered,
// every request is settled at most once, nothing is sent that nobody allowed,
// and nothing is left behind.
func TestSchedules(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	for seed := range n {
		synctest.Test(t, func(t *testing.T) { newSchedule(t, int64(seed)).play() })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// A schedule is one random history of a broker.
type schedule struct {
	*testing.T
	b    *Broker
	l    Limits
	rand *rand.Rand // of the goroutine that plays

	wait sync.WaitGroup // for everything that was started

	mu      sync.Mutex
	said    map[string][]Verdict // by request: what Settle accepted
	allowed map[Key]int          // yeses to a call, by scope once
	granted map[string]int       // further calls that somebody allowed, by session or run and what is bound
	cancels []context.CancelFunc
	seen    []Request // taken, whether still open or not
}

func newSchedule(t *testing.T, seed int64) *schedule {
	r := rand.New(rand.NewSource(seed))
	l := Limits{PerRun: 1 + r.Intn(3), PerSession: 1 + r.Intn(4), PerBridge: 1 + r.Intn(6), Budget: 1 + r.Intn(30), Flood: 1 + r.Intn(30)}
	return &schedule{T: t, b: New(Options{Limits: l}), l: l, rand: r, said: map[string][]Verdict{}, allowed: map[Key]int{}, granted: map[string]int{}}
}

// runsOf are the runs of the two sessions.
var runsOf = map[string][]string{"s1": {"r1", "r2"}, "s2": {"r3"}}

func (s *schedule) play() {
	ended := map[string]bool{}
	for range 10 + s.rand.Intn(30) {
		session := []string{"s1", "s1", "s2"}[s.rand.Intn(3)]
		run := runsOf[session][s.rand.Intn(len(runsOf[session]))]
		switch s.rand.Intn(12) {
		case 0, 1, 2, 3:
			if !ended[run] {
				s.ask(session, run)
			}
		case 4, 5:
			s.take(run)
		case 6, 7:
			s.settle()
		case 8:
			if len(s.cancels) > 0 {
				go s.cancels[s.rand.Intn(len(s.cancels))]()
			}
		case 9:
			time.Sleep(time.Duration(s.rand.Intn(int(2 * minute))))
		case 10:
			synctest.Wait()
		case 11:
			if s.rand.Intn(10) == 0 {
				synctest.Wait() // no call of the run is on its way into Ask
				s.b.EndRun(run)
				ended[run] = true
			}
		}
	}

	// Whatever happened, silence answers everything that is left.
	done := make(chan struct{})
	go func() { s.wait.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(100 * patient):
		s.Errorf("calls are still waiting: %v", s.b.questions.open)
		for _, cancel := range s.cancels {
			cancel()
		}
		<-done
	}
	for _, cancel := range s.cancels {
		cancel()
	}
	for session, runs := range runsOf {
		for _, run := range runs {
			s.b.EndRun(run)
		}
		s.b.EndSession(session)
	}
	synctest.Wait()
	empty(s.T, s.b)
	for id, all := range s.said {
		if len(all) > 1 {
			s.Errorf("%s was settled %d times: %+v", id, len(all), all)
		}
	}
}

// ask makes a call: one of few, so that some are the same.
func (s *schedule) ask(session, run string) {
	r := question(s.rand.Intn(6), inRun(run), inSession(session), within(time.Duration(1+s.rand.Intn(3))*minute),
		risk(profiles.Risk(1+s.rand.Intn(3))), onLine(s.rand.Intn(3)))
	if r.Decision.Risk <= profiles.Medium {
		remembered(&r)
		r.Items[0].Cover.Bound[0].Value = []string{"/a", "/b"}[s.rand.Intn(2)]
	}
	sent := s.rand.Intn(2) == 0
	ctx, cancel := context.WithCancel(s.Context())
	s.cancels = append(s.cancels, cancel)
	s.wait.Go(func() {
		v, err := s.b.Ask(ctx, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		key := r.Items[0].Key
		switch {
		case err != nil && v.Approve:
			s.Errorf("both a yes and the error %v", err)
		case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrFlood):
			s.Errorf("error %v", err)
		case !v.Approve && v.Reason == "":
			s.Errorf("a no for no reason: %+v", v)
		case v.Approve && v.Channel == "grant":
			ofSession, ofRun := widened(session, r.Items[0]), widened(run, r.Items[0])
			switch {
			case !r.Decision.Remember || s.granted[ofSession]+s.granted[ofRun] <= 0:
				s.Errorf("a grant that nobody made let through %+v", r)
			case !sent:
				s.b.Uses().GiveBack(v.Use)
			default:
				of := ofSession
				if s.granted[of] == 0 {
					of = ofRun
				}
				s.granted[of]--
				s.b.Uses().Counts(v.Use)
			}
		case v.Approve:
			if s.allowed[key] == 0 {
				s.Errorf("nobody allowed %+v", r)
			}
		}
	})
}

// widened names the calls like i of a session or run.
func widened(in string, i Item) string { return in + i.Cover.Where() }

// take looks at a run's questions and checks their bounds.
func (s *schedule) take(run string) {
	open := s.b.Take(run)
	if len(open) > s.l.PerRun || len(open) > s.l.PerSession || len(open) > s.l.PerBridge {
		s.Errorf("%d questions of %s are open, limits %+v", len(open), run, s.l)
	}
	s.seen = append(s.seen, open...)
	for _, q := range open {
		if !q.Until.Equal(q.Asked.Add(q.Decision.Timeout)) || len(q.Items) == 0 {
			s.Errorf("a question is %+v", q)
		}
	}
}

// settle has one to three people answer a question that was seen at some
// time, at the same time and not always well.
func (s *schedule) settle() {
	if len(s.seen) == 0 {
		return
	}
	q := s.seen[s.rand.Intn(len(s.seen))]
	for range 1 + s.rand.Intn(3) {
		v := Verdict{Approve: true, Scope: []Scope{Once, SessionScope, RunScope}[s.rand.Intn(3)], By: fmt.Sprint(s.rand.Intn(3))}
		if v.Scope == RunScope {
			v.Count = s.rand.Intn(5)
		}
		if s.rand.Intn(2) == 0 {
			v = Verdict{Reason: []Reason{ElicitationDeclined, NoApprover}[s.rand.Intn(2)]}
		}
		about := q.Digest()
		wrong := s.rand.Intn(5) == 0
		if wrong {
			about[s.rand.Intn(32)] ^= 1
		}
		s.wait.Go(func() {
			// Held over Settle, so that nobody hears the verdict before it
			// stands in the books of this test.
			s.mu.Lock()
			defer s.mu.Unlock()
			_, err := s.b.Settle(s.Context(), q.ID, about, v)
			if err != nil {
				return
			}
			if wrong || v.Valid(q, time.Now()) != nil || !time.Now().Before(q.Until) {
				s.Errorf("accepted %+v for %+v at %v", v, q, time.Now())
			}
			s.said[q.ID] = append(s.said[q.ID], v)
			if !v.Approve {
				return
			}
			for _, i := range q.Items {
				s.allowed[i.Key]++
				switch v.Scope {
				case SessionScope:
					s.granted[widened(i.Key.Session, i)] += grantUses
				case RunScope:
					s.granted[widened(q.Run, i)] += v.Count
				}
			}
		})
	}
}
