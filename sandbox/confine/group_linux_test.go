package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

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
	if _, err := d.NewGroup("codemode-box", Bounds{1 << 20, 0, 1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a group without limits: %v", err) // plain files don't come with their folder
	}
	if list, _ := filepath.Glob(filepath.Join(service, "codemode-box-*")); len(list) != 0 {
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
		if _, err := d.NewGroup("codemode-box", Bounds{1, 0, 1}); err == nil {
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

// A box has a group of its own: the bounds are there before the launcher, and the launcher
// is there before it has its order. The group goes with the box. Where it can't be made the
// box starts without, and says why.
func TestGroupOfABox(t *testing.T) {
	for _, row := range []struct {
		refused, limits string
		optional        bool
	}{
		{limits: on},
		{refused: "memory.swap.max", limits: on, optional: true},
		{refused: "memory.max", limits: "limiting a control group: no such file or directory"},
		{refused: "pids.max", limits: "limiting a control group: no such file or directory"},
		{refused: "cgroup.procs", limits: "moving into a control group: no such file or directory"},
	} {
		t.Run("refused: "+row.refused, func(t *testing.T) {
			o, err := Box{}.order()
			if err != nil {
				t.Fatal(err)
			}
			var written []string
			o.delegation = Delegation{folder: t.TempDir(), write: func(name, text string) error {
				if filepath.Base(name) == row.refused {
					return syscall.ENOENT
				}
				written = append(written, filepath.Base(name)+" "+text)
				return nil
			}}
			groups := func() []string {
				list, _ := filepath.Glob(filepath.Join(o.delegation.folder, "codemode-box-*"))
				return list
			}
			c := exec.Command("/bin/sh", "-c", "exit 0")
			p, err := o.start(executable(t), c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if row.limits == on {
				want := []string{"memory.max 4294967296", "pids.max 4096", "memory.swap.max 1073741824", "memory.oom.group 1", "cgroup.procs " + strconv.Itoa(c.Process.Pid)}
				if row.optional {
					want = append(want[:2], want[3:]...)
				}
				if diff := cmp.Diff(want, written); diff != "" {
					t.Errorf("written, want and got:\n%s", diff)
				}
				if len(groups()) != 1 {
					t.Errorf("groups: %q", groups())
				}
				if !p.Steps.On(Limits) {
					t.Errorf("limits: %s", p.Steps[Limits])
				}
			} else if got := p.Steps[Limits]; !strings.HasSuffix(got, "memory is not bounded: "+row.limits) {
				t.Errorf("limits: %s", got)
			}
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			p.Close()
			if len(groups()) != 0 {
				t.Errorf("left behind: %q", groups())
			}
		})
	}
}

// A program that does not start leaves no group behind.
func TestNoGroupIsLeft(t *testing.T) {
	o, err := Box{Require: true, Run: []string{"/bin/true"}}.order()
	if err != nil {
		t.Fatal(err)
	}
	o.Places = append(o.Places, place{Path: filepath.Join(t.TempDir(), "missing")})
	added := false
	o.delegation = Delegation{folder: t.TempDir(), write: func(name, _ string) error {
		added = added || filepath.Base(name) == "cgroup.procs"
		return nil
	}}
	if p, err := o.start(executable(t), exec.Command("/bin/true")); err == nil {
		p.Close()
		t.Fatal("started with a place that is not there")
	}
	if list, err := os.ReadDir(o.delegation.folder); err != nil || len(list) != 0 || !added {
		t.Errorf("added: %v, left behind: %v, %v", added, list, err)
	}
}

// A program that takes all memory ends with its box, and nothing else does.
func TestMemoryBomb(t *testing.T) {
	if err := Delegated().err; err != nil {
		t.Skip(err)
	}
	o, err := Box{}.order()
	if err != nil {
		t.Fatal(err)
	}
	o.memory, o.swap = 128<<20, 0
	c := exec.Command("/bin/sh", "-c", "echo begun; tail /dev/zero; echo survived") // tail keeps the last line
	c.Env = []string{"PATH=/usr/bin:/bin"}
	var out bytes.Buffer
	c.Stdout = &out
	p, err := o.start(executable(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !p.Steps.On(Limits) {
		t.Errorf("limits: %s", p.Steps[Limits])
	}
	if err := c.Wait(); err == nil || out.String() != "begun\n" {
		t.Errorf("it said %q, and ended with %v", out.String(), err)
	}
	p.Close()
	pattern := filepath.Join(Delegated().folder, fmt.Sprintf("codemode-box-%d-*", os.Getpid()))
	if list, _ := filepath.Glob(pattern); len(list) != 0 {
		t.Errorf("left behind: %q", list)
	}
}
