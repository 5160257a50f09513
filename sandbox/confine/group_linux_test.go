package confine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

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
	if _, err := d.NewGroup("codemode-box", Bounds{1 << 20, 1}); !errors.Is(err, os.ErrNotExist) {
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
		if _, err := d.NewGroup("codemode-box", Bounds{1, 1}); err == nil {
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
