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
