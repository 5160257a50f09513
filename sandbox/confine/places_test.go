//go:build !windows

package confine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A box holds its places where they lead, and says which cannot be.
func TestPlaces(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"ws/a/b/kept", "ws/out", "keys", "data/in"} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "ws/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for at, to := range map[string]string{
		"link": "ws", "loop": "loop", "root": "/", // made by the person
		"ws/keys": "../keys", "ws/inner": "out", "ws/data": base + "/data/in", "ws/shell": "/bin/sh", // perhaps by a server
	} {
		if err := os.Symlink(to, filepath.Join(base, at)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name        string
		write, read []string
		want        string // places, those to write with a +; or the error
	}{
		{"nothing", nil, nil, ""},
		{"a folder and a file", []string{"ws", "keys"}, []string{"data"}, "data keys+ ws+"},
		{"only a file", []string{"ws/file"}, nil, "ws/file+"},
		{"a link", []string{"link"}, nil, "ws+"},
		{"one in another", []string{"ws/out"}, []string{"ws"}, "ws ws/out+"},
		{"twice", []string{"ws"}, []string{"ws", "link"}, "ws+"},
		{"kept in a writable one", []string{"ws"}, []string{"ws/a/b/kept"}, "ws+ ws/a+ ws/a/b+ ws/a/b/kept"},
		{"writable in what is kept", []string{"ws", "ws/a/b/kept"}, []string{"ws/a"}, "ws+ ws/a ws/a/b/kept+"},
		{"missing, to read", nil, []string{"nowhere"}, ""},
		{"missing, to write", []string{"nowhere"}, nil, "its box may write BASE/nowhere, which does not exist"},
		{"relative", []string{"=ws"}, nil, `its box names "ws", which is no plain absolute path`},
		{"not plain", []string{"ws/../keys"}, nil, `its box names "BASE/ws/../keys", which is no plain absolute path`},
		{"links without end", nil, []string{"loop"}, "its box names BASE/loop: too many links"},
		{"all of the machine", nil, []string{"=/"}, "its box names /, which leads to /: no box holds that"},
		{"all of it by a link", nil, []string{"root"}, "its box names BASE/root, which leads to /: no box holds that"},
		{"processes", []string{"=/proc/self"}, nil, "no box holds that"},
		{"a link that a server may have made", []string{"ws"}, []string{"ws/keys"}, "its box names BASE/ws/keys, a link in a folder that a server may write, which leads to BASE/keys: name that instead"},
		{"the same to write", []string{"ws", "ws/keys"}, nil, "leads to BASE/keys: name that instead"},
		{"the same by another name", []string{"link"}, []string{"link/keys"}, "leads to BASE/keys: name that instead"},
		{"a link that stays in", []string{"ws", "ws/inner"}, nil, "ws+"},
		{"a link to what may be read", []string{"ws"}, []string{"data", "ws/data"}, "data data/in ws+"},
		{"a link to what may be read, to write", []string{"ws", "ws/data"}, []string{"data"}, "leads to BASE/data/in: name that instead"},
		{"a link to the system", []string{"ws"}, []string{"ws/shell"}, "ws+"},
	} {
		t.Run(row.name, func(t *testing.T) {
			full := func(paths []string) (all []string) {
				for _, path := range paths {
					if plain, ok := strings.CutPrefix(path, "="); ok {
						all = append(all, plain)
					} else {
						all = append(all, base+"/"+path)
					}
				}
				return all
			}
			places, _, err := Box{Write: full(row.write), Read: full(row.read)}.places()
			if err != nil {
				if text := strings.ReplaceAll(err.Error(), base, "BASE"); row.want == "" || !strings.HasSuffix(text, row.want) {
					t.Errorf("got %q, want %q", text, row.want)
				}
				return
			}
			var got []string
			for _, p := range places {
				path := strings.TrimPrefix(p.Path, base+"/")
				if p.Write {
					path += "+"
				}
				got = append(got, path)
			}
			if diff := cmp.Diff(row.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("want and got:\n%s", diff)
			}
		})
	}
}

// A server chooses by a link in what it may write nothing that another server's box holds.
func TestPlacesInWhatAnotherServerMayWrite(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	for _, folder := range []string{"ws/own", "keys"} {
		if err := os.MkdirAll(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"ws/sub": "../keys", "link": "ws", "ws/same": "own"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name string
		box  Box
		fine bool
	}{
		{"what it wrote there", Box{Write: []string{at("ws/sub")}}, false},
		{"to read", Box{Read: []string{at("ws/sub")}}, false},
		{"by a link of the person", Box{Write: []string{at("link/sub")}}, false},
		{"the folder itself", Box{Write: []string{at("link")}}, true},
		{"a folder in it", Box{Read: []string{at("ws/own")}}, true},
		{"what the box has anyway", Box{Read: []string{at("ws/own"), at("ws/same")}}, true},
	} {
		row.box.Others = []string{at("link")}
		if places, _, err := row.box.places(); (err == nil) != row.fine {
			t.Errorf("%s: %v, %v", row.name, places, err)
		}
		row.box.Others = nil
		if _, _, err := row.box.places(); err != nil {
			t.Errorf("%s, with no other server: %v", row.name, err)
		}
	}
}

// What leads to the person's session stays outside, unless the box names where it leads.
func TestEnviron(t *testing.T) {
	b := Box{Write: []string{"/home/me/app"}, Read: []string{"/run/user/1000/bus", "/tmp/.X11-unix"}}
	got := b.environ([]string{
		"PATH=/bin", "SSH_AUTH_SOCK=/run/agent", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/bus",
		"WAYLAND_DISPLAY=wayland-0", "DISPLAY=:0", "TMPDIR=/var/tmp/me", "API_KEY=k",
	}, "/tmp")
	want := []string{"PATH=/bin", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus", "DISPLAY=:0", "API_KEY=k", "TMPDIR=/tmp"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want and got:\n%s", diff)
	}
	got = Box{Write: []string{"/home/me/app"}}.environ([]string{"TMPDIR=/home/me/app/tmp", "DISPLAY=:0"}, "/tmp")
	if diff := cmp.Diff([]string{"TMPDIR=/home/me/app/tmp"}, got); diff != "" {
		t.Errorf("want and got:\n%s", diff)
	}
}
