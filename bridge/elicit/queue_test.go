package elicit

import (
	"testing"
	"time"
)

func TestQueueGivesWayToTheBridge(t *testing.T) {
	q, r, other := NewQueue(), "r1", "r2"
	mine, theirs := &Request{id: "1", run: r}, &Request{id: "2", run: other}
	changed := q.Changed()
	if !q.add(mine) || !q.add(theirs) {
		t.Fatal("the queue is full")
	}
	select {
	case <-changed:
	case <-time.After(3 * time.Minute):
		t.Fatal("nobody was told of a question")
	}
	if !q.MayAsk(r, 1) || q.Take(r) != nil || q.Take(other) != nil {
		t.Error("a server's question is put beside the bridge's")
	}
	if !q.MayAsk(r, 0) || q.Take(other) != theirs {
		t.Error("a server's question is not put when the bridge's are answered")
	}
	if q.Take(r) != nil || q.MayAsk(r, 1) {
		t.Error("two questions are put, one of them a server's")
	}
	q.Forget(r)
	q.Release(theirs)
	if q.Take(other) != theirs {
		t.Error("a question without an answer is not put again")
	}
	q.remove(theirs)
	if q.Find(other, "2") != nil || q.Take(r) != mine {
		t.Error("a question that is over is still before the person")
	}
	for range maxWaiting {
		q.add(&Request{run: r})
	}
	if q.add(&Request{run: r}) {
		t.Error("there is no bound")
	}
}
