package turns_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/turns"
)

// take takes what is next in a line, for a cost.
func take(l *turns.Line[string], cost int64) string {
	session, v, ok := l.Peek()
	if !ok {
		return ""
	}
	l.Take(session, cost)
	return v
}

// Whoever has had least is next, and of those the one that waits longest; each has its own order.
func TestLineServesWhoHasHadLeast(t *testing.T) {
	var l turns.Line[string]
	for i := range 4 {
		l.Add("large", fmt.Sprint("large", i))
	}
	for i := range 8 {
		l.Add("small", fmt.Sprint("small", i))
	}
	var order []string
	for l.Len() > 0 {
		cost := int64(1)
		if _, v, _ := l.Peek(); v[0] == 'l' {
			cost = 3
		}
		order = append(order, take(&l, cost))
	}
	want := []string{"large0", "small0", "small1", "small2", "large1", "small3", "small4", "small5", "large2", "small6", "small7", "large3"}
	if !slices.Equal(order, want) {
		t.Errorf("served in the order %v, want %v", order, want)
	}
	if take(&l, 1) != "" {
		t.Error("an empty line serves somebody")
	}
}

// A session that comes, or comes back, is next in a line that others have filled; and it has no credit for the
// time in which it wanted nothing.
func TestLineKeepsNoCredit(t *testing.T) {
	var l turns.Line[string]
	for i := range 1000 {
		l.Add("busy", fmt.Sprint("busy", i))
	}
	for range 500 {
		take(&l, 1)
	}
	for range 300 {
		l.Add("quiet", "quiet")
	}
	first := ""
	got := map[string]int{}
	for range 100 {
		v := take(&l, 1)
		if first == "" {
			first = v
		}
		got[v[:4]]++
	}
	if first != "quiet" && first != "busy500" || got["quie"] < 49 || got["quie"] > 51 {
		t.Errorf("first %s, then %v of 100", first, got)
	}
	// What is charged afterwards counts too.
	l.Charge("quiet", 10)
	for range 9 {
		if v := take(&l, 1); v == "quiet" {
			t.Error("a session is served that has had its share")
		}
	}
	if !l.Remove("quiet", func(v string) bool { return v == "quiet" }) || l.Remove("quiet", func(string) bool { return false }) || l.Remove("nobody", func(string) bool { return true }) {
		t.Error("the wrong ones are removed")
	}
}

// Turns are counted by the time that the work takes: a session with long pieces of work has fewer.
func TestLongWorkCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns.New(1)
		var order []string
		do := func(session string, takes time.Duration) {
			go q.Do(t.Context(), session, func() {
				order = append(order, session)
				time.Sleep(takes)
			})
		}
		do("first", time.Second)
		synctest.Wait() // has the place
		for range 10 {
			do("long", 100*time.Millisecond)
			do("short", 10*time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := slices.Index(order[3:], "long"); at < 8 {
			t.Errorf("in the order %v", order)
		}
	})
}

// Sessions that come once each, as those of stateless clients do, are forgotten: neither the memory of a line nor what it
// takes to find the next one grows with them. What others that do not wait have had is kept as far as there is room.
func TestLineForgetsSessionsThatCameOnce(t *testing.T) {
	const once = 50_000
	for name, serve := range map[string]func(l *turns.Line[string], session string){
		"served at once":  func(l *turns.Line[string], session string) { l.Serve(session, 1) },
		"after they wait": func(l *turns.Line[string], session string) { l.Add(session, ""); take(l, 1) },
		"charged later":   func(l *turns.Line[string], session string) { l.Serve(session, 0); l.Charge(session, 3) },
		"who have given up": func(l *turns.Line[string], session string) {
			l.Add(session, "")
			l.Remove(session, func(string) bool { return true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l turns.Line[string]
			l.Serve("large", 1_000)
			for i := range once {
				serve(&l, fmt.Sprint("session ", i))
				if kept := turns.Kept(&l); kept > 1_001 {
					t.Fatalf("after %d sessions %d are kept", i+1, kept)
				}
			}
			l.Add("large", "large")
			l.Add("new", "new")
			if _, v, _ := l.Peek(); v != "new" {
				t.Errorf("%q is next: what a session has had was forgotten because others came", v)
			}
		})
	}
}
