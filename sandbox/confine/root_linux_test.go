package confine

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shell runs a script in a box, and returns what it printed.
func shell(t *testing.T, b Box, dir, script string) (string, Steps) {
	t.Helper()
	var out bytes.Buffer
	p, err := b.Start(executable(t), func() *exec.Cmd {
		return &exec.Cmd{
			Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "HOME=/nowhere"},
			Stdout: &out, Stderr: os.Stderr,
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Cmd.Wait(); err != nil {
		t.Errorf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), p.Steps
}

// A box has a root of its own also where the program starts in a folder by way of a link.
func TestAProgramStartsByWayOfALink(t *testing.T) {
	whole(t)
	_, base := newAround(t)
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "write"), link); err != nil {
		t.Fatal(err)
	}
	got, steps := shell(t, Box{Write: []string{link}, Read: []string{filepath.Dir(executable(t))}}, filepath.Join(link, "a"), "pwd -P")
	if want := filepath.Join(base, "write", "a"); got != want || !steps.On(Files) {
		t.Errorf("it started in %s, want %s; files: %s", got, want, steps[Files])
	}
}

// A link that a server made in a folder of a box makes nothing beside the box: there the
// machine's files are, while the box is made.
func TestNothingIsMadeBesideABox(t *testing.T) {
	base := t.TempDir()
	r := root{at: filepath.Join(base, "new")}
	for _, folder := range []string{"new/ws", "old"} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"far": filepath.Join(base, "old"), "near": "../../old", "in": "/ws"} {
		if err := os.Symlink(to, filepath.Join(r.at, "ws", name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{"/ws/far/a/b": false, "/ws/near/a": false, "/ws/in/a": true, "/ws/b/c": true, "/../apart/d": true} {
		if err := r.folder(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if fd, err := r.target(path+"/file", false); err == nil {
			unix.Close(fd)
		} else if want && path != "/ws/in/a" { // by a link
			t.Errorf("%s/file: %v", path, err)
		}
	}
	if made, err := os.ReadDir(filepath.Join(base, "old")); err != nil || len(made) > 0 {
		t.Errorf("made beside the box: %v, %v", made, err)
	}
}

// A server can't get a lesser box by making a part of its own one impossible.
func TestAServerGetsNoLesserBox(t *testing.T) {
	whole(t)
	_, base := newAround(t)
	out := filepath.Join(base, "write", "out")
	if err := os.Symlink(filepath.Join(base, "home"), out); err != nil {
		t.Fatal(err)
	}
	b := Box{Write: []string{filepath.Join(base, "write")}, Read: []string{filepath.Join(base, "write", "a", "kept")}}
	p, err := b.Start(executable(t), func() *exec.Cmd {
		return &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: out, Env: []string{"HOME=/nowhere"}}
	})
	if err == nil {
		t.Errorf("it was started; files: %s", p.Steps[Files])
		_ = p.Cmd.Wait() // which it is not about
		p.Close()
	}
}

// A box that has the machine's settings asks the bridge about names all the same, and
// leaves the settings as they are.
func TestAnsweringWithTheSettingsOfTheMachine(t *testing.T) {
	whole(t)
	before, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Skip("this machine asks nobody about names")
	}
	got, steps := shell(t, Box{Read: []string{"/etc"}}, "/", "cat /etc/resolv.conf")
	if want := strings.TrimSpace(resolving); got != want || !steps.On(Files) {
		t.Errorf("got %q, want %q; files: %s", got, want, steps[Files])
	}
	after, err := os.ReadFile("/etc/resolv.conf")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the machine's resolv.conf is %q now, %v", after, err)
	}
}

// Of the machine's own folders a box leaves out the sockets of daemons that act for anyone,
// and private keys.
func TestWhatIsNotOfTheSystem(t *testing.T) {
	for _, path := range []string{"/nix/var/nix/daemon-socket/socket", "/nix", "/gnu", "/var/guix/daemon-socket/socket", "/etc/pki/tls/private/localhost.key", "/etc/ssl/private", "/etc/shadow", "/etc/ssh"} {
		if Had(path) || slices.ContainsFunc(slices.Concat(systemFolders, settings), func(had string) bool {
			return within(path, had) || within(path, "/etc/"+had)
		}) {
			t.Errorf("every box has %s", path)
		}
	}
	for _, path := range []string{"/nix/store/x-node/bin/node", "/gnu/store/y", "/etc/pki/tls/certs/ca-bundle.crt", "/usr/bin/env"} {
		if !Had(path) {
			t.Errorf("no box has %s", path)
		}
	}
}
