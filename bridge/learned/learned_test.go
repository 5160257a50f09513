package learned

import (
	"slices"
	"strings"
	"testing"

	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
)

func reads(path string) Seen {
	return Seen{Kind: confine.Reads, Path: path, Real: path, Count: 1}
}

func changes(path string) Seen {
	return Seen{Kind: confine.Writes, Path: path, Real: path, Count: 1}
}

func makes(path string) Seen {
	return Seen{Kind: confine.Writes, Path: path, Real: path, Count: 1, New: true, Place: true}
}

func replaces(path string) Seen {
	return Seen{Kind: confine.Writes, Path: path, Real: path, Count: 1, Place: true}
}

func folder(s Seen) Seen { s.Folder = true; return s }
func gone(s Seen) Seen   { s.Gone = true; return s }

func linked(s Seen, real string) Seen { s.Real = real; return s }

func connects(host string) Seen { return Seen{Kind: confine.Connects, Host: host, Count: 1} }

// around is a machine with a workspace.
var around = Around{
	Home: "/home/me", Workspace: []string{"/home/me/app"}, Temp: []string{"/tmp"}, Had: []string{"/home/me/.npm", "/opt/node"}, Own: true,
	System: func(path string) bool { return in(path, "/usr") },
	Secret: func(path string) string {
		if strings.Contains(path, "/.ssh/") || strings.HasSuffix(path, "/.env") {
			return "keys"
		}
		return ""
	},
}

func TestPropose(t *testing.T) {
	for name, row := range map[string]struct {
		seen []Seen
		want Proposal
	}{
		"nothing": {},
		"what every box has": {
			seen: []Seen{reads("/usr/lib/libc.so"), reads("/home/me/.npm/_npx/a.js"), changes("/home/me/.npm/_logs/a"), reads("/proc/self/maps"), changes("/dev/null")},
		},
		"one file that is there is that file": {
			seen: []Seen{changes("/home/me/notes/a.md"), reads("/srv/data/a.csv")},
			want: Proposal{Write: []string{"/home/me/notes/a.md"}, Read: []string{"/srv/data/a.csv"}},
		},
		"several files are their folder": {
			seen: []Seen{changes("/home/me/notes/a.md"), changes("/home/me/notes/b.md"), reads("/srv/data/a.csv"), reads("/srv/data/b.csv")},
			want: Proposal{Write: []string{"/home/me/notes"}, Read: []string{"/srv/data"}},
		},
		"a new file needs its folder": {
			seen: []Seen{makes("/home/me/notes/a.md")},
			want: Proposal{Write: []string{"/home/me/notes"}},
		},
		"so does one that is replaced": {
			seen: []Seen{replaces("/home/me/notes/a.md")},
			want: Proposal{Write: []string{"/home/me/notes"}},
		},
		"a new folder is there now": {
			seen: []Seen{folder(makes("/home/me/.tool")), folder(makes("/home/me/.tool/deep")), makes("/home/me/.tool/deep/state")},
			want: Proposal{Write: []string{"/home/me/.tool"}},
		},
		"a new file at home is that file": {
			seen: []Seen{makes("/home/me/.tool.json")},
			want: Proposal{Write: []string{"/home/me/.tool.json"}},
		},
		"unless it is gone": {
			seen: []Seen{gone(makes("/home/me/.tool.lock"))},
			want: Proposal{Not: []NotProposed{{"/home/me/.tool.lock", "it was made in /home/me or removed from there: the home folder, with all keys, is in it"}}},
		},
		"files at home do not make it the home": {
			seen: []Seen{reads("/home/me/a"), reads("/home/me/b")},
			want: Proposal{Read: []string{"/home/me/a", "/home/me/b"}},
		},
		"a folder that is listed": {
			seen: []Seen{folder(reads("/srv/data")), reads("/srv/data/deep/a"), folder(reads("/home/me"))},
			want: Proposal{Read: []string{"/srv/data"}, Not: []NotProposed{{"/home/me", "the home folder, with all keys, is in it"}}},
		},
		"installed packages are one": {
			seen: []Seen{reads("/srv/x/node_modules/a/node_modules/b/c.js"), reads("/srv/x/node_modules/d/e.js"), reads("/srv/x/package.json")},
			want: Proposal{Read: []string{"/srv/x/node_modules", "/srv/x/package.json"}},
		},
		"what may be written may be read": {
			seen: []Seen{makes("/srv/data/a"), reads("/srv/data/b"), reads("/srv/data/c/d")},
			want: Proposal{Write: []string{"/srv/data"}},
		},
		"the workspace": {
			seen: []Seen{reads("/home/me/app/a.go"), makes("/home/me/app/b.go"), reads("/srv/data/a")},
			want: Proposal{Write: []string{"workspace"}, Read: []string{"/srv/data/a"}},
		},
		"a workspace that is only read": {
			seen: []Seen{reads("/home/me/app/a.go"), changes("/srv/data/a")},
			want: Proposal{Write: []string{"/srv/data/a"}, Read: []string{"workspace"}},
		},
		"a link out of the workspace": {
			seen: []Seen{linked(reads("/home/me/app/link/a"), "/srv/data/a")},
			want: Proposal{Read: []string{"workspace", "/srv/data/a"}},
		},
		"temporary files of its own": {
			seen: []Seen{folder(makes("/tmp/x")), makes("/tmp/x/a"), makes("/tmp/b"), folder(reads("/tmp"))},
		},
		"and those of others": {
			seen: []Seen{reads("/tmp/shared/a"), makes("/tmp/other/b")},
			want: Proposal{Write: []string{"/tmp/other"}, Read: []string{"/tmp/shared/a"}},
		},
		"secrets": {
			seen: []Seen{reads("/home/me/.ssh/id_rsa"), folder(reads("/home/me/.ssh")), reads("/home/me/app/.env"), reads("/home/me/app/a")},
			want: Proposal{Read: []string{"workspace"}, Not: []NotProposed{
				{"/home/me/.ssh/id_rsa", "keys"}, {"/home/me/.ssh", "keys"}, {"/home/me/app/.env", "keys; but it is in the workspace, which the box has"},
			}},
		},
		"a secret in a folder of the box": {
			seen: []Seen{makes("/srv/data/a"), reads("/srv/data/.env")},
			want: Proposal{Write: []string{"/srv/data"}, Not: []NotProposed{{"/srv/data/.env", "keys; but it is in /srv/data, which the box has"}}},
		},
		"the system's own": {
			seen: []Seen{changes("/usr/lib/a"), {Kind: confine.Connects, Path: "/run/docker.sock", Count: 1}, reads("/run/secrets/a")},
			want: Proposal{Not: []NotProposed{
				{"/usr/lib/a", "it belongs to the system"},
				{"/run/docker.sock", "it is a socket of a program of this machine; a box has none of them"},
				{"/run/secrets/a", "what programs of this machine share leads out of any box"},
			}},
		},
		"hosts": {
			seen: []Seen{connects("api.example.com:443"), connects("db.example.com:5432"), connects("203.0.113.7:80")},
			want: Proposal{Net: []string{"api.example.com", "db.example.com:5432", "203.0.113.7:80"}},
		},
		"this machine and its network": {
			seen: []Seen{connects("localhost:5432"), connects("[::1]:80"), connects("10.1.2.3:443")},
			want: Proposal{Not: []NotProposed{
				{"localhost:5432", "it is a program of this machine: name localhost and the port if the server shall reach it"},
				{"[::1]:80", "it is a program of this machine: name localhost and the port if the server shall reach it"},
				{"10.1.2.3:443", "it is in the network of this machine: name it if the server shall reach it"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Propose(row.seen, around)
			got.Used = nil
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Where names are not known, no host is proposed.
func TestProposeWithoutNames(t *testing.T) {
	a := around
	a.Own = false
	got := Propose([]Seen{connects("203.0.113.7:443"), connects("10.0.0.1:53")}, a)
	want := []NotProposed{{"203.0.113.7:443", "the name of the host is not known here"}}
	if diff := cmp.Diff(want, got.Not); diff != "" || len(got.Net) > 0 {
		t.Errorf("net %q (-want +got):\n%s", got.Net, diff)
	}
}

// Where the program is fetched from, its box need not reach: it is fetched before that.
func TestProposeWithoutTheRegistry(t *testing.T) {
	a := around
	a.Fetched = []string{"registry.npmjs.org:443"}
	got := Propose([]Seen{connects("registry.npmjs.org:443"), connects("registry.npmjs.org:80"), connects("api.example.com:443")}, a)
	want := []NotProposed{{"registry.npmjs.org:443", "its program is fetched from there beforehand, in a box of its own: name it if the server itself shall reach it"}}
	if diff := cmp.Diff(want, got.Not); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slices.Sort(got.Net)
	if diff := cmp.Diff([]string{"api.example.com", "registry.npmjs.org:80"}, got.Net); diff != "" {
		t.Errorf("its network (-want +got):\n%s", diff)
	}
}

// What Node compiles is kept for whoever is next, and is no reason to write there.
func TestKeptIsWhatNodeCompiles(t *testing.T) {
	kept := Kept("/home/me", []string{"TMPDIR=/home/me/tmp", "UV_CACHE_DIR=relative"})
	for _, folder := range []string{"/tmp/node-compile-cache", "/home/me/tmp/node-compile-cache", "/home/me/.npm"} {
		if !slices.Contains(kept, folder) {
			t.Errorf("%s is not among %q", folder, kept)
		}
	}
	if slices.Contains(kept, "relative") {
		t.Errorf("a folder that is none: %q", kept)
	}
}

func TestUsed(t *testing.T) {
	a := around
	a.Run = true
	many := changes("/home/me/app/a.go")
	many.Count = 3
	got := Propose([]Seen{
		many, makes("/home/me/app/b.go"), reads("/srv/data/a"), connects("api.example.com:443"),
		{Kind: confine.Starts, Path: "/usr/bin/git", Count: 2}, {Kind: confine.Listens, Host: "127.0.0.1:3000", Count: 1},
	}, a)
	want := []Used{
		{confine.Writes, "workspace", 4, "/home/me/app/a.go"},
		{confine.Reads, "/srv/data", 1, "/srv/data/a"},
		{confine.Connects, "api.example.com:443", 1, ""},
		{confine.Starts, "/usr/bin/git", 2, ""},
		{confine.Listens, "127.0.0.1:3000", 1, ""},
	}
	if diff := cmp.Diff(want, got.Used); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/usr/bin/git"}, got.Run); diff != "" || !got.Limited {
		t.Errorf("limited %v (-want +got):\n%s", got.Limited, diff)
	}
}

func TestCalls(t *testing.T) {
	got, err := ParseCall([]byte(`{"tool": "read", "args": {"path": "/a"}}`))
	if err != nil || got.Tool != "read" || string(got.Args) != `{"path": "/a"}` {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{``, `read`, `{"args": {}}`, `{"tool": "read", "args": []}`, `{"tool": "read", "args": null}`} {
		if got, err := ParseCall([]byte(text)); err == nil {
			t.Errorf("%s is a call: %+v", text, got)
		}
	}
	calls, err := Pairs([]string{"a", "b"}, []string{`{"x": 1}`})
	if err != nil || len(calls) != 2 || string(calls[1].Args) != "{}" {
		t.Errorf("%+v, %v", calls, err)
	}
	if _, err := Pairs([]string{"a"}, []string{"{}", "{}"}); err == nil {
		t.Error("arguments without a call")
	}
	if _, err := Pairs([]string{"a"}, []string{"path"}); err == nil {
		t.Error("arguments that are no JSON")
	}
}
