package handles

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pool is a shared store in memory.
type pool struct {
	mu  sync.Mutex
	all map[string]Kept // by principal and handle
	err error
	got int // how often something was read
}

func (p *pool) KeepHandle(_ context.Context, principal string, k Kept, lives time.Duration, most int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if lives <= 0 || lives > lifetime || most != maxBytes {
		return errors.New("a wrong bound")
	}
	if p.err == nil {
		p.all[principal+" "+k.ID] = k
	}
	return p.err
}

func (p *pool) Handle(_ context.Context, principal, id string) (Kept, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got++
	k, ok := p.all[principal+" "+id]
	switch {
	case p.err != nil:
		return Kept{}, 0, p.err
	case !ok:
		return Kept{}, 0, ErrNoHandle
	}
	return k, time.Minute, nil
}

// What an answer names, every bridge reads for the same principal, and for nobody else;
// what it does not name stays where it is.
func TestSharedHandles(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	p := &pool{all: map[string]Kept{}}
	one, other := NewKeeper(clock, p), NewKeeper(clock, p)
	ann := one.Of("ann")
	named := ann.Put(Item{Kind: "result", JSON: json.RawMessage(`[1,2,3]`)}).Handle
	unnamed := ann.Put(Item{Kind: "result", JSON: json.RawMessage(`[4]`)}).Handle
	shelf := ann.Shelf("r1")
	pending := shelf.Put(Item{Kind: "text", Text: "the call is not recorded"}).Handle
	answer := []byte(`{"handle":"` + named + `","pending":"` + pending + `"}`)
	for range 2 {
		if err := ann.Publish(answer); err != nil {
			t.Fatal(err)
		}
	}
	read := func(k *Keeper, principal, id string) string {
		t.Helper()
		value, err := k.Of(principal).Read("r2", id, "")
		if err != nil {
			return err.Error()
		}
		return string(value)
	}
	if got := read(other, "ann", named); got != `[1,2,3]` {
		t.Errorf("another bridge reads %s", got)
	}
	before := p.got
	if got := read(other, "ann", named); got != `[1,2,3]` || p.got != before {
		t.Errorf("the second time it reads %s, and asks the store %d times", got, p.got-before)
	}
	for what, got := range map[string]string{"bob": read(other, "bob", named), "nobody": read(other, "", named), "what no answer names": read(other, "ann", unnamed),
		"what is not recorded": read(other, "ann", pending), "the same, where it is": read(one, "ann", pending)} {
		if !strings.Contains(got, "there is no handle") {
			t.Errorf("%s: %s", what, got)
		}
	}
	now = now.Add(2 * time.Minute) // longer than the store says
	delete(p.all, "ann "+named)
	if got := read(other, "ann", named); !strings.Contains(got, "there is no handle") {
		t.Errorf("after its time it reads %s", got)
	}
	p.err = errors.New("the store is gone")
	if got := read(other, "ann", "h9_x"); !strings.Contains(got, "which another bridge may have: the store is gone") {
		t.Errorf("without the store: %s", got)
	}
	if err := ann.Publish([]byte(unnamed)); err == nil || !strings.Contains(err.Error(), "which this bridge alone has now: the store is gone") {
		t.Errorf("publishing without the store: %v", err)
	}
	if got := read(one, "ann", unnamed); got != `[4]` {
		t.Errorf("without the store its own bridge reads %s", got)
	}
}

// Two configurations that have one store share no handles: a name may be two people's.
func TestHandlesOfAnotherConfiguration(t *testing.T) {
	p := &pool{all: map[string]Kept{}}
	if err := SharedBy("id a", p).KeepHandle(t.Context(), "ann", Kept{ID: "h1"}, time.Minute, maxBytes); err != nil {
		t.Fatal(err)
	}
	if k, _, err := SharedBy("id a", p).Handle(t.Context(), "ann", "h1"); err != nil || k.ID != "h1" {
		t.Errorf("the same configuration: %v, %v", k, err)
	}
	if _, _, err := SharedBy("id b", p).Handle(t.Context(), "ann", "h1"); !errors.Is(err, ErrNoHandle) {
		t.Errorf("another configuration: %v", err)
	}
	if SharedBy("id a", nil) != nil {
		t.Error("there is something to share without a store")
	}
}
