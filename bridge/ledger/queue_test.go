package ledger

import "testing"

// While one session has thousands of records in the queue, those of another are in the next transaction, and no
// transaction has more rows than a session can wait for.
func TestSessionsTakeTurnsInTheQueue(t *testing.T) {
	q := NewQueue()
	of := func(session string, rows int) *Item {
		return &Item{session: session, Bodies: make([][]byte, rows)}
	}
	const busy = 4000
	for range 3 * BatchRows { // alone, it has all of them at once
		q.add(of("busy", 1))
	}
	if all, _ := q.Take(); len(all) != 3*BatchRows || q.Shared() {
		t.Errorf("%d records of a session that is alone are in one transaction", len(all))
	}
	q.add(of("", 1)) // of nobody
	if q.Take(); q.Shared() {
		t.Error("what belongs to no session counts as another one")
	}
	q.add(of("quiet", 1))
	if q.Take(); !q.Shared() {
		t.Error("a second session does not count")
	}
	for range busy {
		q.add(of("busy", 1))
	}
	taken, transactions := 0, 0
	next := func() (rows int, sessions map[string]int) {
		sessions = map[string]int{}
		items, _ := q.Take()
		for _, it := range items {
			rows += it.rows()
			sessions[it.session] += it.rows()
		}
		transactions++
		taken += sessions["busy"]
		if rows > BatchRows {
			t.Errorf("%d rows in a transaction", rows)
		}
		return rows, sessions
	}
	next()
	for i := range 50 {
		q.add(of("quiet", 1+i%3))
		if _, sessions := next(); sessions["quiet"] == 0 {
			t.Fatalf("record %d is not in the next transaction, but %v", i, sessions)
		}
	}
	for _, s := range []string{"a", "b", "c"} {
		for range 3 {
			q.add(of(s, BatchRows/4))
		}
	}
	if _, sessions := next(); len(sessions) != 4 {
		t.Errorf("a transaction has only rows of %v", sessions)
	}
	for q.Len() > 0 {
		next()
	}
	if taken != busy || transactions > 10+busy/(BatchRows-4) {
		t.Errorf("%d records in %d transactions", taken, transactions)
	}
	q.add(of("busy", 10*BatchRows)) // what belongs together is not divided
	q.add(of("quiet", 1))
	first, _ := q.Take()
	second, _ := q.Take()
	if len(first)+len(second) != 2 || q.Len() != 0 {
		t.Errorf("%d and %d items are taken, want 2", len(first), len(second))
	}
}
