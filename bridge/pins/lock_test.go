package pins

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/lockfile"

	"github.com/google/go-cmp/cmp"
)

var (
	isThis  = "sha256:" + strings.Repeat("aa", 32) // the identity of the configured server
	another = "sha256:" + strings.Repeat("bb", 32)
)

// A locked is a store beside a lock file.
type locked struct {
	*Store
	path string
}

func newLocked(t *testing.T, s *Store) locked {
	t.Helper()
	l := locked{s, filepath.Join(t.TempDir(), "codemode.lock")}
	s.CompareWith(l.path, map[string]string{"fs": isThis})
	return l
}

// has writes the lock file, with one server and its tools.
func (l locked) has(t *testing.T, identity string, tools ...catalog.Definition) {
	t.Helper()
	server := &lockfile.Server{Identity: identity, Tools: map[string]lockfile.Tool{}}
	for _, d := range tools {
		server.Tools[d.Name] = lockfile.Tool{Digest: d.Digest(), Script: "fs__" + d.Name}
	}
	l.says(t, string((&lockfile.Lock{Servers: map[string]*lockfile.Server{"fs": server}}).Text()))
}

func (l locked) says(t *testing.T, text string) {
	t.Helper()
	os.Remove(l.path) // so that it is another file, whatever the clock of the file system
	if err := os.WriteFile(l.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// is checks how the tool stands that the server lists, under rules that let everything in.
func (l locked) is(t *testing.T, d catalog.Definition, state State, then Reaction, why string) {
	t.Helper()
	all, _ := observe(t, l.Store, Rules{New: Allow, Changed: Allow}, d)
	stands(t, all[d.Name], state, then, why)
	judged, err := l.Judge("fs", []catalog.Definition{d}, Rules{New: Allow, Changed: Allow})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, judged); diff != "" {
		t.Errorf("judged otherwise than observed (-observed +judged):\n%s", diff)
	}
	waiting, err := l.Unreviewed([]string{"fs"})
	if err != nil {
		t.Fatal(err)
	}
	is := Accepted
	for _, w := range waiting {
		if w.Tool == d.Name {
			is = w.State
			if len(w.Difference) == 0 && is != Blocked {
				t.Error("it is not said what differs")
			}
		}
	}
	if is != state {
		t.Errorf("it stands %s, and what waits is %+v", state, waiting)
	}
}

func (l locked) accept(t *testing.T, d catalog.Definition) {
	t.Helper()
	if err := l.AcceptLocked("fs", []catalog.Definition{d}, "ann", noon); err != nil {
		t.Fatal(err)
	}
}

// Of store and lock the stricter holds.
func TestStoreAndLock(t *testing.T) {
	t.Parallel()
	a, b := tool("read", "reads"), tool("read", "reads and sends")
	for name, do := range map[string]func(t *testing.T, l locked){
		"a line that nobody accepted makes nothing looser": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.is(t, a, New, Ask, "codemode.lock has it, and nobody has accepted that here")
			l.is(t, b, New, Ask, "not as codemode.lock has it")
		},
		"an accepted line is enough": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.is(t, a, Accepted, Allow, "")
		},
		"a tool that is not as its accepted line": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.is(t, b, Changed, Ask, "its definition changed since ann accepted it")
			l.is(t, a, Accepted, Allow, "")
		},
		"a line that changed since": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.has(t, isThis, b)
			l.is(t, a, Changed, Ask, "codemode.lock has another definition of it")
			l.is(t, b, Changed, Ask, "its definition changed since ann accepted it")
			l.accept(t, b)
			l.is(t, b, Accepted, Allow, "")
		},
		"a line that is gone": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.has(t, isThis)
			l.is(t, a, Changed, Ask, "codemode.lock, by which it was accepted, no longer has it")
		},
		"a server that is gone from the file": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.says(t, string((&lockfile.Lock{}).Text()))
			l.is(t, a, Changed, Ask, "no longer has it")
		},
		"a file that is gone": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			os.Remove(l.path)
			l.is(t, a, Changed, Ask, "codemode.lock, by which it was accepted, is gone")
			l.is(t, tool("new", "is new"), New, Ask, "it is new") // and nothing is let in as it is found
		},
		"a file that cannot be read": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.says(t, "<<<<<<< ours\n")
			l.is(t, a, Changed, Ask, "codemode.lock, by which it was accepted, cannot be read")
		},
		"a file that never could be read": func(t *testing.T, l locked) {
			l.says(t, "nonsense")
			l.is(t, a, New, Ask, "it is new")
		},
		"a server that is another one": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			l.CompareWith(l.path, map[string]string{"fs": another})
			l.is(t, a, Changed, Ask, "its server is no longer the one of codemode.lock")
		},
		"a file with another server": func(t *testing.T, l locked) {
			l.has(t, another, a)
			l.is(t, a, New, Ask, "nobody has accepted that here")
			if err := l.AcceptLocked("fs", []catalog.Definition{a}, "ann", noon); !errors.Is(err, ErrChanged) {
				t.Errorf("it was accepted: %v", err)
			}
		},
		"a tool that the store holds with another digest": func(t *testing.T, l locked) {
			if err := l.Pin("fs", []catalog.Definition{a}, "bob", noon); err != nil {
				t.Fatal(err)
			}
			l.has(t, isThis, b)
			l.is(t, a, Changed, Ask, "codemode.lock has another definition of it")
			l.is(t, b, Changed, Ask, "its definition changed since bob accepted it")
			if why := l.Objection("fs", "read", a.Digest()); !strings.Contains(why, "has another definition") {
				t.Errorf("accepting it in the store alone: %q", why)
			}
			if why := l.Objection("fs", "read", b.Digest()) + l.Objection("fs", "none", a.Digest()); why != "" {
				t.Errorf("there is nothing against it, and yet: %q", why)
			}
		},
		"what the store accepted and the file does not have stays": func(t *testing.T, l locked) {
			if err := l.Pin("fs", []catalog.Definition{a}, "bob", noon); err != nil {
				t.Fatal(err)
			}
			l.has(t, isThis)
			l.is(t, a, Accepted, Allow, "")
			l.says(t, "nonsense")
			l.is(t, a, Accepted, Allow, "")
		},
		"what agrees needs nobody": func(t *testing.T, l locked) {
			l.is(t, a, Accepted, Allow, "") // let in as it was found
			l.has(t, isThis, a)
			l.is(t, a, Accepted, Allow, "")
		},
		"what somebody blocked stays blocked": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.is(t, a, New, Ask, "")
			if err := l.Block("fs", "read", "", "bob", noon); err != nil {
				t.Fatal(err)
			}
			l.accept(t, a)
			l.is(t, a, Blocked, Quarantine, "bob blocked it")
		},
		"a review of one's own does not need the file": func(t *testing.T, l locked) {
			l.has(t, isThis, a)
			l.accept(t, a)
			if err := l.Accept("fs", "read", a.Digest(), "bob", later); err != nil {
				t.Fatal(err)
			}
			os.Remove(l.path)
			l.is(t, a, Accepted, Allow, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores(t, func(t *testing.T, s *Store) { do(t, newLocked(t, s)) })
		})
	}
}

// A proposal offers what the server lists as the file has it, and nothing that the person
// could not see.
func TestProposal(t *testing.T) {
	t.Parallel()
	a, b := tool("a", "reads"), tool("b", "writes")
	odd := tool("odd\xff", "has an odd name")
	l := newLocked(t, Open(filepath.Join(t.TempDir(), "pins")))
	l.has(t, isThis, a, b, odd, tool("c", "as the file has it"), tool("gone", "is not listed"))
	if err := l.Pin("fs", []catalog.Definition{b}, "bob", noon); err != nil {
		t.Fatal(err)
	}
	listed := []catalog.Definition{odd, b, a, tool("c", "as the server has it"), tool("d", "is not in the file")}
	p, err := l.Propose("fs", listed)
	if err != nil {
		t.Fatal(err)
	}
	var offered []string
	for _, o := range p.Offers {
		offered = append(offered, o.Tool.Name)
	}
	p.Offers = nil
	if diff := cmp.Diff(Proposal{Agreed: 1, Differs: []string{"c"}, Extra: []string{"d"}, Missing: []string{"gone"}}, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "odd\xff"}, offered); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	if err := l.AcceptLocked("fs", []catalog.Definition{a, odd}, "ann", noon); err != nil {
		t.Fatal(err)
	}
	if p, err := l.Propose("fs", listed); err != nil || len(p.Offers) != 0 || p.Agreed != 3 {
		t.Errorf("once that is accepted: %+v, %v", p, err)
	}
	if err := l.AcceptLocked("fs", []catalog.Definition{tool("c", "as the server has it")}, "ann", noon); !errors.Is(err, ErrChanged) {
		t.Errorf("a definition that the file does not have was accepted: %v", err)
	}
	l.CompareWith(l.path, map[string]string{"fs": another})
	if p, err := l.Propose("fs", listed); err != nil || !p.Other || len(p.Offers) != 0 {
		t.Errorf("of another server: %+v, %v", p, err)
	}
	l.says(t, "")
	if _, err := l.Propose("fs", listed); err == nil {
		t.Error("a file that cannot be read proposes something")
	}
}

// A line of the lock decides which of two tools has the plain name, and can't give a tool
// the name of another one.
func TestKeptNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		server, tool, script string
		kept                 bool
	}{
		{"fs", "read", "fs__read", true},
		{"fs", "read-file", "fs__read_file", true},
		{"fs", "read.file", "fs__read_file_098033", true},
		{"my-fs", "read", "my_fs__read", true},
		{"my-fs", "read", "my_fs_39d1de__read", true},
		{"1fs", "read", "_1fs__read", true},
		{"fs", "a__b", "fs__a__b", true},
		{"fs", strings.Repeat("x", 200), "fs__" + strings.Repeat("x", 100) + "_7af4bc", true},
		{"fs", "ünï", "fs___n__1b6008", true},
		{"fs", "read", "fs__delete", false},
		{"fs", "read", "web__read", false},
		{"fs", "read", "fs_read", false},
		{"fs", "read", "read", false},
		{"fs", "read", "fs__read_all", false},
		{"fs", "read", "fs__reader_15fe14", false},
		{"fs", "read", "fs__15fe14", true},
		{"fs", "read", "fs__facade", false}, // which is another tool
		{"fs", "read", "fs__re_facade", false},
		{"fs", "read.file", "fs__read_file_a1b2c3", false},
		{"fs", "read", "fsx_39d1de__read", false},
		{"fs", "read", "facade__read", false},
		{"git", "hub__x", "git_hub__x", false},
	} {
		d := catalog.Definition{Name: row.tool}
		lock := &lockfile.Lock{Servers: map[string]*lockfile.Server{row.server: {Identity: isThis, Tools: map[string]lockfile.Tool{row.tool: {Digest: d.Digest(), Script: row.script}}}}}
		got := KeptNames(lock)[catalog.ToolRef{Server: row.server, Tool: row.tool}]
		if kept := got == row.script; kept != row.kept {
			t.Errorf("%s of %s is kept as %s: %v", row.tool, row.server, row.script, kept)
		}
	}
	if KeptNames(nil) != nil {
		t.Error("no lock keeps names")
	}
}

// What a model reads of a tool is shown whole.
func TestTextsAreNotCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 500) + "END"
	d := catalog.Definition{Name: "x", Description: long, Input: []byte(`{"type": "object", "required": ["path"], "properties": {"path": {"type": "string", "description": "a\u202eb", "enum": ["` + long + `"]}}}`)}
	var all []string
	for _, part := range texts(d) {
		all = append(all, part.Lines...)
	}
	text := strings.Join(all, "\n")
	if n := strings.Count(text, "END"); n != 2 {
		t.Errorf("%d of 2 long texts are whole:\n%s", n, text)
	}
	if !strings.Contains(text, `a\u{202E}b`) || strings.Contains(text, "required") || strings.Contains(text, `type: "`) {
		t.Errorf("it shows\n%s", text)
	}
}

// A file that cannot be read is read once: it may be large, and each server asks for it.
func TestADamagedLockIsReadOnce(t *testing.T) {
	l := newLocked(t, Open(t.TempDir()))
	l.says(t, "nonsense\n")
	_, _, first := l.Lock()
	_, _, second := l.Lock()
	if first == nil || first != second {
		t.Errorf("%v, then %v", first, second)
	}
	l.has(t, isThis)
	if _, _, err := l.Lock(); err != nil {
		t.Errorf("once it is right: %v", err)
	}
}
