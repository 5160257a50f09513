package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A run that somebody holds is not given to another bridge, however long that
// one asks.
func TestARunThatIsHeldIsNotGiven(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	r, _ := first.lookup(id)
	first.hold(r)
	defer first.letGo(r)
	var seconds atomic.Int64
	second := f.bridge(t, "two", queued(), func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(seconds.Add(1)) * time.Second) }
	})
	if err := second.GoOn(t.Context(), id, "the test"); err != nil {
		t.Errorf("it goes on where it is, but: %v", err)
	}
	if _, err := second.Resume(t.Context(), id, "the test", nil); !errors.Is(err, errElsewhere) {
		t.Errorf("asked for: %v", err)
	}
	if kept, _, err := f.records.Read(t.Context(), id); err != nil || kept.Owner != "one" || kept.Wanted != "" {
		t.Errorf("it is kept as %+v, %v", kept, err)
	}
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	<-r.done
	if n, m := len(first.up.made()), len(second.up.made()); n != 5 || m != 0 {
		t.Errorf("%d calls were made there and %d here", n, m)
	}
}

// A run is nobody's but who started it, here or anywhere.
func TestARunIsItsRequesters(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	if _, err := first.takeUp(t.Context(), id, claim{principal: "bob"}); !errors.Is(err, ErrNoRun) {
		t.Errorf("while it is live: %v", err)
	}
	waitUntil(t, func() bool { r, ok := first.lookup(id); return ok && r.quiet(first.o.Gate.Broker()) })
	first.Close(0)
	second := f.bridge(t, "two", queued())
	for _, who := range []string{"bob", ""} {
		if _, err := second.takeUp(t.Context(), id, claim{principal: who}); !errors.Is(err, ErrNoRun) {
			t.Errorf("%q takes it up: %v", who, err)
		}
	}
	if _, err := second.takeUp(t.Context(), id, claim{principal: "ci"}); err != nil {
		t.Errorf("who started it: %v", err)
	}
}

// A run is not put away while a call of it is under way: its answer would be
// lost.
func TestARunThatSendsIsNotPutAway(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	sent, answer := make(chan struct{}), make(chan struct{})
	b.up.tools["b__echo"] = func(_ context.Context, args json.RawMessage) (string, error) {
		close(sent)
		<-answer
		return text(string(args)), nil
	}
	id := f.startPaused(t, b, `return await Promise.all([codemode.b__echo({n: 1}), codemode.a__echo({n: 2})])`, 1)
	<-sent
	r, _ := b.lookup(id)
	if r.putOff() || r.putAway() {
		t.Error("it is put away")
	}
	close(answer)
	waitUntil(t, r.putAway)
	<-r.done
	if !errors.Is(r.err, errPutAway) {
		t.Errorf("it ended: %v", r.err)
	}
}
