package gate

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/turns"
	"codemode-bridge/profiles"
)

// A session that does thousands of searches and checks at once does not keep another session's
// search, call or preview waiting for them: each has its turns, the reading and the check of the arguments, the
// search, and the reading of the answer, after what has begun and one piece of work of the other each time.
func TestSessionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, profiles.Spec{}, &fakeCaller{reply: `{"content":[]}`}, &book{})
		q := turns.New(runtime.GOMAXPROCS(0))
		var quietTurns atomic.Int32
		g.turn = func(ctx context.Context, session string, work func()) error {
			if session == "quiet" {
				quietTurns.Add(1)
			}
			return q.Do(ctx, session, work)
		}
		busy := beginIn(t, g, "busy")
		quiet := beginIn(t, g, "quiet")

		work := make(chan struct{})
		done := make(chan struct{}, 4000)
		for range cap(done) {
			go func() {
				_ = g.InTurn(t.Context(), busy, func() error { <-work; return nil })
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		call := func(name, args string) func() error {
			return func() error {
				_, err := g.Call(t.Context(), quiet, Call{Number: 1, Name: name, Args: json.RawMessage(args)})
				return err
			}
		}
		for _, c := range []struct {
			what string
			do   func() error
			has  int // turns
		}{
			{"a search", call("search_tools", `{"query":"read"}`), 4},
			{"a call", call("fs__read", `{"path":"/a"}`), 3},
			{"a preview", func() error { return quiet.Preview(t.Context(), analysis.Report{}) }, 1},
		} {
			answered := make(chan error, 1)
			go func() { answered <- c.do() }()
			synctest.Wait()
			waited := 0
			for len(answered) == 0 {
				work <- struct{}{}
				synctest.Wait()
				waited++
			}
			if err := <-answered; err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			if took := quietTurns.Swap(0); int(took) != c.has {
				t.Errorf("%s took %d turns, want %d", c.what, took, c.has)
			}
			if most := c.has + 2; waited == 0 || waited > most {
				t.Errorf("%s waited for %d pieces of work of another session, want at most %d", c.what, waited, most)
			}
		}

		// A run that has ended waits for no turn.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.InTurn(ctx, quiet, func() error { t.Error("work of a run that has ended"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(work)
		for range cap(done) {
			<-done
		}
	})
}

func beginIn(t *testing.T, g *Gate, session string) *Run {
	t.Helper()
	r, err := g.Begin(t.Context(), Origin{ID: "run-" + session, Session: session}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
