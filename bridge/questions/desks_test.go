package questions

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
)

// twoCentres has the laptop's questions reach two centres in turn, which share a store.
func twoCentres(t *testing.T, do func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.other = NewDesk(DeskOptions{Store: s.centre})
		s.begin()
		defer func() { s.stop() }()
		do(t, s)
	})
}

// at sends what the laptop said to a desk, which does not wait.
func (s *stage) at(d *Desk, said []byte) (Answer, error) {
	s.t.Helper()
	var a Asking
	err := json.Unmarshal(said, &a)
	a.Wait = 0
	text, err2 := json.Marshal(a)
	err = errors.Join(err, err2)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := d.Ask(s.t.Context(), "ann", "Ann", text)
	out, _ := answer.(Answer)
	return out, err
}

// Whichever centre a laptop reaches: a question is there once, an answer comes down once,
// and what is over vanishes.
func TestTwoCentres(t *testing.T) {
	twoCentres(t, func(t *testing.T, s *stage) {
		for round := range 4 { // each centre gets each part of it
			run := func(r *approval.Request) { r.Run = "r" + string(rune('1'+round)) }
			c := s.puts(t.Context(), request(run))
			e := s.only()
			for range round {
				time.Sleep(MaxWait)
				if again := s.only(); again.ID != e.ID || !again.Asked.Equal(e.Asked) || again.Digest() != e.Digest() {
					t.Fatalf("at the other centre it is %+v, and was %+v", again.Request, e.Request)
				}
				if round%2 == 1 {
					break
				}
			}
			if e, err := s.says("carol", e, yes); err != nil || e.Verdict == nil || e.Verdict.By != "carol" {
				t.Fatalf("carol is told %+v, %v", e.Verdict, err)
			}
			if got := <-c; !got.v.Approve || got.v.By != "carol" {
				t.Errorf("the call gets %+v", got)
			}
			if told := locked(s, &s.told); len(told) != round+1 {
				t.Errorf("after %d answers the laptop judged %q", round+1, told)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s.puts(ctx, request(run))
			s.only()
			cancel()
			if all := s.waits(); len(all) != 0 {
				t.Errorf("withdrawn, %d are still open", len(all))
			}
		}
	})
}

// What an earlier centre says late, of what the laptop had then, takes no question and no
// answer from the laptop for longer than a moment.
func TestALateCentre(t *testing.T) {
	twoCentres(t, func(t *testing.T, s *stage) {
		first := s.puts(t.Context(), request())
		s.only()
		old := locked(s, &s.first)
		c := s.puts(t.Context(), request(func(r *approval.Request) { r.Run = "r2" }))
		all := s.waits()
		if len(all) != 2 {
			t.Fatalf("%d requests are open at the centre", len(all))
		}
		for _, d := range []*Desk{s.desk, s.other} { // and nothing waits for what it says
			if _, err := s.at(d, old); err != nil {
				t.Fatal(err)
			}
		}
		if all = s.waits(); len(all) != 2 {
			t.Fatalf("then %d are", len(all))
		}
		for _, e := range all {
			if _, err := s.says("carol", e, yes); err != nil {
				t.Error(err)
			}
		}
		if one, two := <-first, <-c; !one.v.Approve || !two.v.Approve {
			t.Errorf("the calls get %+v and %+v", one, two)
		}
	})
}

// A slowStore lets another centre in before it keeps a request.
type slowStore struct {
	approval.Store
	before func()
	puts   atomic.Int32
}

func (s *slowStore) Put(ctx context.Context, e approval.StoredRequest) error {
	if s.puts.Add(1) == 1 {
		s.before()
	}
	return s.Store.Put(ctx, e)
}

// A question that a laptop sends again elsewhere, before its first centre has kept it, is
// kept once, and refused by neither.
func TestTwoCentresAtOnce(t *testing.T) {
	s := newStage(t)
	lifted := request()
	lifted.Items[0].Key.Configuration = conf
	a, err := json.Marshal(Asking{Configuration: conf, Questions: []Question{{ID: "qaaaaaaaaaaaa", Left: time.Minute, Request: &lifted}}})
	if err != nil {
		t.Fatal(err)
	}
	other := NewDesk(DeskOptions{Store: s.centre})
	slow := &slowStore{Store: s.centre}
	slow.before = func() {
		if _, err := s.at(other, a); err != nil {
			t.Errorf("the second centre: %v", err)
		}
	}
	if answer, err := s.at(NewDesk(DeskOptions{Store: slow}), a); err != nil || len(answer.Missing) != 0 {
		t.Errorf("the first centre: %+v, %v", answer, err)
	}
	if slow.puts.Load() != 1 {
		t.Fatalf("the first centre kept it %d times", slow.puts.Load())
	}
	all, err := s.centre.Requests(t.Context(), approval.Filter{Open: time.Now()})
	if err != nil || len(all) != 1 {
		t.Errorf("open are %+v, %v", all, err)
	}
}
