package gate

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"codemode-bridge/bridge/turns"
	"codemode-bridge/profiles"
)

// A session that does thousands of searches and checks at once does not keep another session's
// search waiting for them: that has its two turns, of the check of its arguments and of the
// search, after what has begun and one piece of work of the other each time.
func TestSessionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, profiles.Spec{}, &fakeCaller{}, &book{})
		g.turn = turns.New(runtime.GOMAXPROCS(0)).Do
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
		answered := make(chan error, 1)
		go func() {
			_, err := g.Call(t.Context(), quiet, Call{Number: 1, Name: "search_tools", Args: json.RawMessage(`{"query":"read"}`)})
			answered <- err
		}()
		synctest.Wait()
		waited := 0
		for len(answered) == 0 {
			work <- struct{}{}
			synctest.Wait()
			waited++
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if most := 2 + 2; waited > most {
			t.Errorf("a search waited for %d pieces of work of another session, want at most %d", waited, most)
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
