package sandbox

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// In its namespaces a worker is the first process and nobody, and sees no
// network.
func TestNamespaces(t *testing.T) {
	pool := fakes(t, Options{})
	s := pool.Session()
	r, err := play(t, s, "place", nil)
	if err != nil {
		t.Fatal(err)
	}
	if step := pool.Status().Hardening["namespaces"]; step != "on" {
		t.Skipf("namespaces: %s", step)
	}
	if got, want := string(r.Value), `{"parent":0,"pid":1,"uid":65534,"up":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A step that the system refuses is left out, reported, and not tried again; an
// error that has nothing to do with it is just an error.
func TestRefusedCage(t *testing.T) {
	before := refused.namespaces.Load()
	t.Cleanup(func() { refused.namespaces.Store(before) })
	refused.namespaces.Store(nil)

	c := newCage(1 << 20)
	defer c.close()
	for _, err := range []error{nil, os.ErrNotExist, &os.PathError{Err: syscall.EACCES}} {
		if c.started(nil, err) {
			t.Errorf("%v: tried again", err)
		}
	}
	if c.group == nil && !c.started(nil, &os.PathError{Op: "fork/exec", Err: syscall.EPERM}) {
		t.Error("a refusal: not tried again")
	}
	c.group, c.namespaces = nil, false
	if c.started(nil, syscall.EPERM) {
		t.Error("tried again with nothing left to leave out")
	}
	pool := fakes(t, Options{Warm: -1})
	r, err := play(t, pool.Session(), "place", nil)
	if err != nil || strings.Contains(string(r.Value), `"pid":1,`) {
		t.Errorf("after a refusal: %s, %v", r.Value, err)
	}
	if step := pool.Status().Hardening["namespaces"]; step != "operation not permitted" {
		t.Errorf("namespaces: %q", step)
	}
}

func TestMemoryKills(t *testing.T) {
	for text, want := range map[string]int64{
		"nr_free_pages 17\noom_kill 3\nunevictable_pgs_culled 0\n": 3,
		"nr_free_pages 17\noom_kill 12":                            12,
		"nr_free_pages 17\ncma_oom_kill 3\n":                       0,
		"":                                                         0,
	} {
		if got := killsIn([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	c := &cage{kills: memoryKills() - 1}
	if !c.killedForMemory() {
		t.Error("a kill since the process began is overlooked")
	}
}
