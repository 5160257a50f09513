package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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

// controlGroups makes a tree of files as a kernel shows control groups, with
// our own group at /service/bridge, and says that /service is ours.
func controlGroups(t *testing.T, own string) (root, self string) {
	root = filepath.Join(t.TempDir(), "cgroup")
	service := filepath.Join(root, "service")
	if err := os.MkdirAll(filepath.Join(service, "bridge"), 0o755); err != nil {
		t.Fatal(err)
	}
	self = filepath.Join(t.TempDir(), "self")
	for name, text := range map[string]string{self: own, filepath.Join(service, "cgroup.subtree_control"): "cpu"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, self
}

func TestDelegation(t *testing.T) {
	root, self := controlGroups(t, "1:name=systemd:/\n0::/service/bridge\n")
	service := filepath.Join(root, "service")
	marked := unix.Setxattr(service, "user.delegate", []byte("1"), 0) == nil ||
		unix.Setxattr(service, "trusted.delegate", []byte("1"), 0) == nil
	if os.Geteuid() == 0 && !marked {
		t.Skip("root can't mark a folder as delegated here")
	}
	d := findDelegation(root, self)
	if d.err != nil || d.folder != service {
		t.Fatalf("found %q, %v", d.folder, d.err)
	}
	if b, _ := os.ReadFile(filepath.Join(service, "cgroup.subtree_control")); string(b) != "+memory +pids" {
		t.Errorf("handed on %q", b)
	}
	if _, err := d.newGroup(1 << 20); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a group without limits: %v", err) // plain files don't come with their folder
	}
	if list, _ := filepath.Glob(filepath.Join(service, "codemode-worker-*")); len(list) != 0 {
		t.Errorf("left behind: %q", list)
	}
}

func TestNoDelegation(t *testing.T) {
	for _, own := range []string{"", "0::/\n", "0::/service\n", "3:memory:/service/bridge\n", "0::/nowhere/bridge\n", "0::/../../etc\n"} {
		root, self := controlGroups(t, own)
		d := findDelegation(root, self)
		if d.err == nil {
			t.Errorf("%q: found %s", own, d.folder)
		}
		if _, err := d.newGroup(1); err == nil {
			t.Errorf("%q: a group", own)
		}
	}
	if os.Geteuid() == 0 {
		root, self := controlGroups(t, "0::/service/bridge\n")
		if d := findDelegation(root, self); !errors.Is(d.err, errNotDelegated) {
			t.Errorf("what root may write is taken for a gift: %+v", d)
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
