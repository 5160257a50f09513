package lifecycle

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// Calls that were allowed together go on a few at a time, in the order in which they
// were made; one whose run ends waits for nothing.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Slots
		var entered []int
		for _, call := range []int{1, 2, 5, 3, 4} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if call == 4 {
				cancel()
			}
			go func() {
				s.Enter(ctx, call, 2)
				entered = append(entered, call)
			}()
			synctest.Wait()
		}
		if want := []int{1, 2, 4}; !slices.Equal(entered, want) {
			t.Errorf("entered %v, want %v", entered, want)
		}
		for range 2 {
			s.Leave()
			synctest.Wait()
		}
		if want := []int{1, 2, 4, 3, 5}; !slices.Equal(entered, want) {
			t.Errorf("entered %v, want %v", entered, want)
		}
	})
}

// Whoever waits hears of each event, and of the calls that a server does not have.
func TestIdle(t *testing.T) {
	var l Life
	for _, e := range []struct {
		Event
		want int
	}{{Event{Kind: Begins}, 0}, {Event{Kind: Idles, Calls: 3}, 3}, {Event{Kind: Sends, Call: 1}, 2}, {Event{Kind: Returns, Call: 1}, 3}, {Event{Kind: Moves}, 0}} {
		_, changed := l.Idle()
		l.Step(e.Event)
		select {
		case <-changed:
		default:
			t.Errorf("%s: nobody was told", eventKinds[e.Kind])
		}
		if got, _ := l.Idle(); got != e.want {
			t.Errorf("%s: %d calls, want %d", eventKinds[e.Kind], got, e.want)
		}
	}
}
