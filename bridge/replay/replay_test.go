package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A script is what a replay is told of one, and what came of it.
type script struct {
	*Replay
	mu       sync.Mutex
	log      []string
	diverged error
	over     chan struct{}
}

var began = time.Unix(1000, 0)

// again begins a replay of calls, which are answered unless they are called "sent",
// in turns.
func again(calls map[int]string, turns ...int) *script {
	s := &script{over: make(chan struct{})}
	o := Options{
		Calls: map[int]Past{}, Now: time.Now, Moves: func() {}, Over: s.over,
		CaughtUp: func() { s.say("caught up") },
		Diverged: func(err *DivergedError) { s.diverged = err },
	}
	for number, name := range calls {
		o.Calls[number] = Past{Call{"tool", name, "d"}, name != "sent"}
	}
	for i, call := range turns {
		o.Turns = append(o.Turns, Turn{Call: call, At: began.Add(time.Duration(i) * time.Second)})
	}
	s.Replay = New(o)
	return s
}

func (s *script) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
}

func (s *script) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, ", ")
}

// calls makes a call and notes how it is answered.
func (s *script) calls(t *testing.T, number int, name, digest string) {
	go func() {
		found := s.Call(t.Context(), number, Call{"tool", name, digest}, func(at time.Time) error {
			s.say(fmt.Sprintf("%d at %d", number, at.Unix()-began.Unix()))
			return nil
		})
		if found.Live {
			s.say(fmt.Sprintf("%d live, lost %v", number, found.Lost))
		}
	}()
	synctest.Wait()
}

func TestAnswersComeInTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := again(map[int]string{1: "a", 2: "b", 4: "sent"}, 2, 3, 1)
		s.calls(t, 1, "a", "d")
		s.calls(t, 4, "sent", "d")
		s.calls(t, 2, "b", "d")
		if got := s.heard(); got != "2 at 0" {
			t.Errorf("before the timer is set: %s", got)
		}
		if !s.UnderWay() {
			t.Error("the script is where it was before all of it came again")
		}
		if !s.Timer(3, time.Hour, func(at time.Time) { s.say(fmt.Sprintf("timer at %d", at.Unix()-began.Unix())) }) {
			t.Error("a timer that fired before is not served")
		}
		synctest.Wait()
		if got, want := s.heard(), "2 at 0, timer at 1, 1 at 2, caught up, 4 live, lost true"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.calls(t, 5, "c", "d")
		if got := s.heard(); !strings.HasSuffix(got, ", 5 live, lost false") || s.UnderWay() || s.Unmet() != nil {
			t.Errorf("a new call: %s", got)
		}
		if s.Timer(6, 0, nil) {
			t.Error("a new timer is served")
		}
	})
}

// Timers that had not fired run from where the script was, in the order of their
// times, and end with the run.
func TestTimersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := again(map[int]string{1: "a"}, 1)
		for number, wait := range map[int]time.Duration{2: 2 * time.Minute, 3: time.Minute, 4: time.Hour} {
			s.Timer(number, wait, func(at time.Time) { s.say(fmt.Sprintf("timer %d, %v", number, at.IsZero())) })
		}
		s.calls(t, 1, "a", "d")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		close(s.over)
		if got, want := s.heard(), "1 at 0, caught up, timer 3, true, timer 2, true"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestDivergence(t *testing.T) {
	for _, row := range []struct {
		name  string
		does  func(t *testing.T, s *script)
		wants string
	}{
		{"another tool", func(t *testing.T, s *script) { s.calls(t, 1, "x", "d") }, `call 1 was tool "a", and is tool "x" now`},
		{"other arguments", func(t *testing.T, s *script) { s.calls(t, 1, "a", "e") }, "call 1 of a has other arguments"},
		{"a call in place of a timer", func(t *testing.T, s *script) { s.calls(t, 2, "a", "d") }, "call 2 was a timer, and is a now"},
		{"a timer in place of a call", func(_ *testing.T, s *script) { s.Timer(1, 0, nil) }, "call 1 was a, and is a timer now"},
		{"it waits for something else", func(t *testing.T, s *script) {
			s.calls(t, 1, "a", "d")
			s.calls(t, 3, "c", "d")
			s.Idles(1)
			time.Sleep(Patience)
		}, "it did not make call 2 (a timer) again"},
		{"it cannot be given its answer", func(t *testing.T, s *script) {
			s.Call(t.Context(), 1, Call{"tool", "a", "d"}, func(time.Time) error { return errors.New("it is gone") })
		}, "it is gone"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := again(map[int]string{1: "a"}, 1, 2)
				row.does(t, s)
				synctest.Wait()
				if s.diverged == nil || !strings.HasSuffix(s.diverged.Error(), "before: "+row.wants) {
					t.Errorf("it diverged by %v", s.diverged)
				}
			})
		})
	}
}

// That the script is idle is in doubt until it has had time to move.
func TestAnIdleScriptThatMovesDoesNotDiverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := again(map[int]string{1: "a", 2: "b"}, 1, 2)
		s.calls(t, 3, "c", "d")
		s.Idles(1)
		time.Sleep(Patience / 2)
		s.calls(t, 1, "a", "d")
		time.Sleep(Patience)
		synctest.Wait()
		if s.diverged != nil {
			t.Errorf("it diverged by %v", s.diverged)
		}
		if err := s.Unmet(); err == nil || !strings.HasSuffix(err.Error(), "it ended before it made call 2 (b)") {
			t.Errorf("at its end, what is missing is %v", err)
		}
	})
}

func TestACallWaitsAsLongAsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := again(map[int]string{1: "a"}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		found := make(chan Found, 1)
		go func() { found <- s.Call(ctx, 2, Call{"tool", "b", "d"}, nil) }()
		synctest.Wait()
		cancel()
		if got := <-found; got.Live {
			t.Error("a call is made before the script is where it was")
		}
	})
}
