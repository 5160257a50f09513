package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
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
	unrefuse(t)
	c := newCage(1 << 20)
	defer c.close()
	for _, err := range []error{nil, os.ErrNotExist, &os.PathError{Err: syscall.EACCES}} {
		if c.started(nil, err) {
			t.Errorf("%v: tried again", err)
		}
	}
	c.close()
	c.group = nil
	for _, step := range []string{"in our memory", "namespaces"} {
		if !c.started(nil, &os.PathError{Op: "fork/exec", Err: syscall.EPERM}) {
			t.Errorf("a refusal of %s: not tried again", step)
		}
	}
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

// unrefuse forgets what the system refused, until the test ends.
func unrefuse(t *testing.T) {
	namespaces, inOurMemory := refused.namespaces.Load(), refused.inOurMemory.Load()
	t.Cleanup(func() { refused.namespaces.Store(namespaces); refused.inOurMemory.Store(inOurMemory) })
	refused.namespaces.Store(nil)
	refused.inOurMemory.Store(nil)
}

// A worker starts in our memory, so that a large bridge starts it as fast as a small one. A
// system that refuses this loses no confinement: it starts in a copy, in the same namespaces.
func TestStartsInOurMemory(t *testing.T) {
	unrefuse(t)
	for _, copied := range []bool{false, true} {
		c := newCage(1 << 20)
		if c.copied != copied {
			t.Fatalf("copied: %t, want %t", c.copied, copied)
		}
		cmd := exec.Command("/worker")
		c.confine(cmd)
		want := uintptr(namespaces | inOurMemory)
		if copied {
			want = namespaces
		}
		if got := cmd.SysProcAttr.Cloneflags; got != want {
			t.Errorf("copied: %t: flags %x, want %x", copied, got, want)
		}
		if len(cmd.SysProcAttr.UidMappings)+len(cmd.SysProcAttr.GidMappings) > 0 {
			t.Error("users are mapped: the parent would have to write that while it waits for the process")
		}
		c.close()
		c.group = nil
		if !copied && !c.started(cmd, syscall.EINVAL) {
			t.Error("a refusal: not tried again")
		}
		if step := c.steps["namespaces"]; step != "on" {
			t.Errorf("namespaces: %s", step)
		}
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

// The kernel is asked once for workers that start one after the other.
func TestKillsAreCountedSeldom(t *testing.T) {
	var k killCount
	asked := int64(0)
	count := func() int64 { asked++; return 10 * asked }
	start := time.Now()
	for i, want := range []int64{10, 10, 20} {
		if got := k.kills(start.Add(time.Duration(i)*countEvery*2/3), count); got != want {
			t.Errorf("start %d: %d kills, want %d", i, got, want)
		}
	}
}
