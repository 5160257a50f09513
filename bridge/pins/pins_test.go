package pins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	later = noon.Add(24 * time.Hour)
	usual = Rules{New: Allow, Changed: Ask}
	shut  = Rules{New: Quarantine, Changed: Quarantine}
)

func tool(name, description string) catalog.Definition {
	return catalog.Definition{Name: name, Description: description, Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
}

func observe(t *testing.T, s *Store, rules Rules, tools ...catalog.Definition) (map[string]Standing, []Event) {
	t.Helper()
	all, events, err := s.Observe("fs", tools, rules, noon)
	if err != nil {
		t.Fatal(err)
	}
	return all, events
}

// stands checks the state of one tool and what becomes of it.
func stands(t *testing.T, got Standing, state State, hold Reaction, why string) {
	t.Helper()
	if diff := cmp.Diff(Standing{State: state, Reaction: hold}, got, cmpopts.IgnoreFields(Standing{}, "Why", "Was", "Difference")); diff != "" {
		t.Errorf("it stands (-want +got):\n%s", diff)
	}
	if !strings.Contains(got.Why, why) || (got.Why == "") != (hold == Allow) {
		t.Errorf("it stands so because %q, want %q", got.Why, why)
	}
}

// stores are one in a folder and one in memory: they behave alike.
func stores(t *testing.T, do func(t *testing.T, s *Store)) {
	t.Run("folder", func(t *testing.T) { do(t, Open(filepath.Join(t.TempDir(), "new", "pins"))) })
	t.Run("memory", func(t *testing.T) { do(t, Open("")) })
}

func TestFirstUseIsTrusted(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		a := tool("read", "Reads.")
		all, events := observe(t, s, usual, a, tool("list", "Lists."))
		stands(t, all["read"], Accepted, Allow, "")
		if len(events) != 1 || events[0].Kind != FirstContact || events[0].Tools != 2 {
			t.Errorf("events %+v", events)
		}
		if _, events = observe(t, s, usual, a, tool("list", "Lists.")); events != nil {
			t.Errorf("nothing has changed, and there are events %+v", events)
		}
		all, events = observe(t, s, usual, a, tool("more", "Newer."))
		stands(t, all["more"], Accepted, Allow, "")
		if len(events) != 1 || events[0].Kind != Appeared || events[0].Tool != "more" {
			t.Errorf("events %+v", events)
		}
	})
}

// Every field counts, and the order of keys does not.
func TestWhatIsAChange(t *testing.T) {
	yes, no := true, false
	base := tool("read", "Reads.")
	base.Annotations.ReadOnly = &yes
	for name, change := range map[string]func(*catalog.Definition){
		"title":       func(d *catalog.Definition) { d.Title = "Read" },
		"description": func(d *catalog.Definition) { d.Description += " " },
		"input":       func(d *catalog.Definition) { d.Input = json.RawMessage(`{"type":"object"}`) },
		"output":      func(d *catalog.Definition) { d.Output = json.RawMessage(`{"type":"object"}`) },
		"read-only":   func(d *catalog.Definition) { d.Annotations.ReadOnly = &no },
		"destructive": func(d *catalog.Definition) { d.Annotations.Destructive = &no },
		"idempotent":  func(d *catalog.Definition) { d.Annotations.Idempotent = &yes },
		"open world":  func(d *catalog.Definition) { d.Annotations.OpenWorld = &no },
	} {
		s := Open("")
		observe(t, s, usual, base)
		changed := base
		change(&changed)
		all, events := observe(t, s, usual, changed)
		stands(t, all["read"], Changed, Ask, "changed")
		if len(all["read"].Difference) == 0 {
			t.Errorf("another %s is shown as no difference", name)
		}
		want := []Event{{Server: "fs", Tool: "read", Kind: Differs, From: base.Digest(), To: changed.Digest(), Reaction: Ask}}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("another %s: events (-want +got):\n%s", name, diff)
		}
	}
	s := Open("")
	observe(t, s, usual, base)
	same := base
	same.Input = json.RawMessage(`{ "properties": {"path": {"type": "string"}}, "type": "object" }`)
	all, events := observe(t, s, usual, same)
	stands(t, all["read"], Accepted, Allow, "")
	if events != nil {
		t.Errorf("another order of keys: events %+v", events)
	}
}

func TestThereAndBackIsSeen(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		a, b := tool("read", "Reads."), tool("read", "Reads and sends.")
		observe(t, s, usual, a)
		for range 2 {
			all, events := observe(t, s, usual, b)
			stands(t, all["read"], Changed, Ask, "changed since it was first seen on 2026-11-20")
			if diff := cmp.Diff([]Event{{Server: "fs", Tool: "read", Kind: Differs, From: a.Digest(), To: b.Digest(), Reaction: Ask}}, events); diff != "" {
				t.Errorf("to B: events (-want +got):\n%s", diff)
			}
			all, events = observe(t, s, usual, a)
			stands(t, all["read"], Accepted, Allow, "")
			if diff := cmp.Diff([]Event{{Server: "fs", Tool: "read", Kind: Returned, From: b.Digest(), To: a.Digest(), Reaction: Allow}}, events); diff != "" {
				t.Errorf("back to A: events (-want +got):\n%s", diff)
			}
		}
	})
}

func TestAPersonAccepts(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		a, b, c := tool("read", "Reads."), tool("read", "Reads more."), tool("read", "Sends.")
		observe(t, s, usual, a)
		observe(t, s, usual, b)
		waiting, err := s.Unreviewed([]string{"fs", "other"})
		if err != nil {
			t.Fatal(err)
		}
		want := []UnreviewedTool{{Server: "fs", Tool: "read", State: Changed, Was: a.Digest(), Digest: b.Digest()}}
		if diff := cmp.Diff(want, waiting, cmpopts.IgnoreFields(UnreviewedTool{}, "Since", "AcceptedAt", "Difference", "Notices")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		observe(t, s, usual, c)
		if err := s.Accept("fs", "read", b.Digest(), "ann", later); !errors.Is(err, ErrChanged) {
			t.Errorf("accepting what is not there any more: %v", err)
		}
		if err := s.Accept("fs", "other", c.Digest(), "ann", later); !errors.Is(err, ErrUnknown) {
			t.Errorf("accepting what never was: %v", err)
		}
		if err := s.Accept("fs", "read", c.Digest(), "ann", later); err != nil {
			t.Fatal(err)
		}
		all, _ := observe(t, s, usual, c)
		stands(t, all["read"], Accepted, Allow, "")
		all, _ = observe(t, s, usual, a)
		stands(t, all["read"], Changed, Ask, "changed since ann accepted it on 2026-11-21")
		if was := all["read"].Was; was == nil || was.Description != "Sends." {
			t.Errorf("what was accepted is %+v", was)
		}
	})
}

func TestQuarantine(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		known, extra := tool("read", "Reads."), tool("extra", "Extra.")
		if err := s.Pin("fs", []catalog.Definition{known}, "ann", noon); err != nil {
			t.Fatal(err)
		}
		all, events := observe(t, s, shut, known, extra)
		stands(t, all["read"], Accepted, Allow, "")
		stands(t, all["extra"], New, Quarantine, "new")
		if len(events) != 1 || events[0].Tool != "extra" || events[0].Reaction != Quarantine {
			t.Errorf("events %+v", events)
		}
		if _, events := observe(t, s, shut, known, extra); events != nil {
			t.Errorf("told twice: %+v", events)
		}
		// Another setting lets it in, and says so once.
		all, _ = observe(t, s, usual, known, extra)
		stands(t, all["extra"], Accepted, Allow, "")
		all, _ = observe(t, s, shut, known, extra)
		stands(t, all["extra"], Accepted, Allow, "")
	})
}

func TestABlockHolds(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir)
	a, b := tool("read", "Reads."), tool("read", "Reads more.")
	observe(t, s, usual, a)
	if err := s.Block("fs", "read", a.Digest(), "ann", later); err != nil {
		t.Fatal(err)
	}
	s = Open(dir) // another start
	for _, d := range []catalog.Definition{a, b, a} {
		all, _ := observe(t, s, Rules{Allow, Allow}, d)
		stands(t, all["read"], Blocked, Quarantine, "ann blocked it on 2026-11-21")
	}
	observe(t, s, usual) // it goes, and comes back
	all, _ := observe(t, s, usual, a)
	stands(t, all["read"], Blocked, Quarantine, "ann")
	if err := s.Accept("fs", "read", a.Digest(), "bob", later); err != nil {
		t.Fatal(err)
	}
	all, _ = observe(t, s, usual, a)
	stands(t, all["read"], Accepted, Allow, "")
}

// A tool that came and went without being accepted is new when it comes again.
func TestUnacceptedToolsAreForgotten(t *testing.T) {
	s := Open("")
	observe(t, s, shut, tool("read", "Reads."))
	observe(t, s, shut)
	if waiting, err := s.Unreviewed([]string{"fs"}); err != nil || len(waiting) != 0 {
		t.Errorf("what is gone waits: %+v, %v", waiting, err)
	}
	observe(t, s, usual, tool("read", "Reads."))
	observe(t, s, usual, tool("read", "Reads more."))
	observe(t, s, usual)
	all, events := observe(t, s, usual, tool("read", "Reads more."))
	stands(t, all["read"], Changed, Ask, "changed")
	if len(events) != 1 || events[0].Kind != Differs {
		t.Errorf("events %+v", events)
	}
}

func TestJudgeWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pins")
	s := Open(dir)
	all, err := s.Judge("fs", []catalog.Definition{tool("read", "Reads.")}, usual)
	if err != nil {
		t.Fatal(err)
	}
	stands(t, all["read"], Accepted, Allow, "")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a folder: %v", err)
	}
}

// What can't be read accepts nothing, whatever the rules.
func TestDamageAcceptsNothing(t *testing.T) {
	dir := t.TempDir()
	good := Open(dir)
	observe(t, good, usual, tool("read", "Reads."))
	path := filepath.Join(dir, "server-fs.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{
		"empty": "", "half": string(text[:len(text)/2]), "null": "null", "more": string(text) + "{}",
		"another version": strings.Replace(string(text), `"version":1`, `"version":2`, 1),
		"another server":  strings.Replace(string(text), `"server":"fs"`, `"server":"gs"`, 1),
		"an unknown key":  strings.Replace(string(text), `"version":1`, `"version":1,"x":1`, 1),
		"another text":    strings.Replace(string(text), "Reads.", "Sends.", 1),
		"no definition":   `{"version":1,"server":"fs","tools":{"read":{}}}`,
		"no tool":         `{"version":1,"server":"fs","tools":{"read":null}}`,
	}
	for name, damaged := range rows {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, rules := range []Rules{usual, {Allow, Allow}} {
			all, events, err := Open(dir).Observe("fs", []catalog.Definition{tool("read", "Reads.")}, rules, noon)
			if err == nil || events != nil {
				t.Errorf("%s: error %v, events %v", name, err, events)
			}
			stands(t, all["read"], Unknown, Ask, "cannot be read")
		}
		if all, _ := Open(dir).Judge("fs", []catalog.Definition{tool("read", "Reads.")}, shut); all["read"].Reaction != Quarantine {
			t.Errorf("%s: a quarantined server's tool is only asked", name)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != damaged {
			t.Errorf("%s: the damaged file was written over (%v)", name, err)
		}
	}
}

func TestWhatCannotBeWrittenIsNotAccepted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all, _, err := Open(filepath.Join(file, "pins")).Observe("fs", []catalog.Definition{tool("read", "Reads.")}, usual, noon)
	if err == nil {
		t.Error("it was written below a file")
	}
	stands(t, all["read"], Unknown, Ask, "cannot be read or written")
}

func TestTheFileIsTheOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "pins")
	observe(t, Open(dir), usual, tool("read", "Reads."))
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "server-fs.json"): 0o600, filepath.Join(dir, "lock"): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// Several processes with one folder: no decision is lost, and each step is told
// by one of them.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	told := make(chan Event, 1000)
	for i := range 4 {
		wg.Go(func() {
			s := Open(dir)
			for n := range 3 {
				_, events, err := s.Observe("fs", []catalog.Definition{tool("read", "Reads.")}, shut, noon)
				if err != nil {
					t.Error(err)
				}
				for _, e := range events {
					told <- e
				}
				if err := s.Pin("fs", []catalog.Definition{tool(fmt.Sprintf("t%d-%d", i, n), "x")}, "ann", noon); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(told)
	new := 0
	for e := range told {
		if e.Tool == "read" && e.Kind == Appeared {
			new++
		}
	}
	if new != 1 {
		t.Errorf("the new tool was told %d times", new)
	}
	s := Open(dir)
	for i := range 4 {
		for n := range 3 {
			if _, ok, err := s.Find("fs", fmt.Sprintf("t%d-%d", i, n)); !ok || err != nil {
				t.Errorf("the pin %d-%d is lost (%v)", i, n, err)
			}
		}
	}
}

func TestAnotherProcessIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pins")
	s := Open(dir)
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 100)
	var wg sync.WaitGroup
	wg.Go(func() { s.Watch(ctx, func() { changed <- struct{}{} }) })
	defer wg.Wait()
	defer cancel()
	// Pinned again and again: when the watch has begun is its own affair.
	other := Open(dir)
	for n := 0; ; n++ {
		if err := other.Pin("fs", []catalog.Definition{tool("read", fmt.Sprint(n))}, "ann", noon); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			if w, ok, err := s.Find("fs", "read"); !ok || err != nil || w.AcceptedBy != "ann" {
				t.Errorf("found %+v, %v, %v", w, ok, err)
			}
			return
		case <-time.After(poll):
		}
	}
}

func TestForget(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		if err := s.Forget("fs"); err != nil {
			t.Fatal(err)
		}
		observe(t, s, usual, tool("read", "Reads."))
		if err := s.Forget("fs"); err != nil {
			t.Fatal(err)
		}
		all, _ := observe(t, s, shut, tool("read", "Reads."))
		stands(t, all["read"], New, Quarantine, "new")
	})
}

// What a file can't hold is compared by its digest all the same.
func TestOddDefinitions(t *testing.T) {
	huge := tool("huge", strings.Repeat("x", maxKept))
	bad := catalog.Definition{Name: "bad\xff", Input: json.RawMessage("{")}
	stores(t, func(t *testing.T, s *Store) {
		observe(t, s, usual, huge, bad)
		all, _ := observe(t, s, usual, huge, bad)
		stands(t, all["huge"], Accepted, Allow, "")
		stands(t, all["bad\xff"], Accepted, Allow, "")
		other := huge
		other.Description = "small"
		bad2 := bad
		bad2.Title = "other"
		all, _ = observe(t, s, usual, other, bad2)
		stands(t, all["huge"], Changed, Ask, "changed")
		stands(t, all["bad\xff"], Changed, Ask, "changed")
		waiting, err := s.Unreviewed([]string{"fs"})
		if err != nil || len(waiting) != 2 {
			t.Fatalf("%d tools wait, want 2: %+v, %v", len(waiting), waiting, err)
		}
		for _, want := range []string{"not kept", "only its digest"} {
			if !strings.Contains(fmt.Sprint(waiting), want) {
				t.Errorf("what waits does not say %q: %+v", want, waiting)
			}
		}
	})
}

func TestTooManyTools(t *testing.T) {
	s := Open("")
	tools := make([]catalog.Definition, maxTools+1)
	for i := range tools {
		tools[i] = catalog.Definition{Name: fmt.Sprintf("t%06d", i)}
	}
	all, _ := observe(t, s, usual, tools...)
	stands(t, all["t000000"], Accepted, Allow, "")
	stands(t, all[fmt.Sprintf("t%06d", maxTools)], New, Quarantine, "different tools")
	if _, events := observe(t, s, usual, tools...); events != nil {
		t.Errorf("the one too many is told of again: %+v", events)
	}
}

func TestDifference(t *testing.T) {
	yes, no := true, false
	was := catalog.Definition{Name: "read", Title: "Read", Description: "Reads a file.\nStays here.", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","pattern":"^/"},"gone":{"type":"number"}},"required":["path"]}`),
		Annotations: profiles.Annotations{ReadOnly: &yes, Destructive: &no}}
	is := was
	is.Description = "Reads a file.\nStays here.\nTell the fil\u0435system\u200b tool."
	is.Input = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"note":{"type":"string"}},"required":["path","note"]}`)
	is.Annotations = profiles.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &yes}
	var got []string
	for _, part := range difference(&was, true, &is) {
		got = append(got, part.What)
		got = append(got, part.Lines...)
	}
	want := []string{
		"description", " Stays here.", `+Tell the fil\u{435}system\u{200B} tool.`,
		"input schema", "-properties.gone.type: \"number\"", "-properties.path.pattern: \"^/\"", "+properties.note.type: \"string\"", " properties.path.type: \"string\"",
		"-required: [\"path\"]", "+required: [\"path\",\"note\"]", " type: \"object\"",
		"annotations", "-readOnlyHint: true", "+readOnlyHint: false", " destructiveHint: false", "+idempotentHint: true",
		"!readOnlyHint loosens: it no longer says that it only reads", "!idempotentHint: it now says that a repeated call changes nothing more, which nobody has checked",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the difference is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := notices(is); len(n) != 2 || !strings.Contains(n[0], "1") || !strings.Contains(n[1], `fil\u{435}system`) {
		t.Errorf("notices %q", n)
	}
	if n := notices(was); len(n) != 0 {
		t.Errorf("notices of a plain tool: %q", n)
	}
}

// What a server wrote can't end a line, hide, move the cursor or fill a screen.
func TestDifferenceIsInert(t *testing.T) {
	hostile := "\x1b[2J\u202eevil\u2028\r+accepted\u200d\x00" + strings.Repeat("y", 1<<16)
	schema, err := json.Marshal(map[string]any{"type": "object", hostile[:40]: hostile, "enum": slices.Repeat([]string{hostile[:50]}, 500)})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Repeat("a\nb\n", 600)
	for _, is := range []catalog.Definition{
		{Name: "x", Title: hostile, Description: hostile, Input: schema, Output: schema},
		{Name: "x", Description: lines},
	} {
		was := catalog.Definition{Name: "x", Description: strings.Repeat("b\na\n", 600)}
		total := 0
		for _, part := range difference(&was, true, &is) {
			for _, line := range part.Lines {
				total += len(line)
				if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > 0x7e && r != '…' }) || !strings.Contains("+- !", line[:1]) {
					t.Fatalf("a line is %q", line[:min(len(line), 200)])
				}
			}
		}
		if total > 5*(maxLines+1)*(10*maxLine+100) {
			t.Errorf("the difference has %d bytes", total)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"server":"fs","tools":{}}`))
	f.Add([]byte(`{"version":1,"server":"fs","tools":{"a":{"seen":{"digest":"x","at":"2026-11-20T12:00:00Z"},"blocked":{"at":"2026-11-20T12:00:00Z","by":"a"}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var read file
		if read.parse(raw, "fs") != nil {
			return
		}
		text, err := json.Marshal(&read)
		if err != nil {
			t.Fatal(err)
		}
		var again file
		if err := again.parse(text, "fs"); err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		listed := []catalog.Definition{tool("a", "x"), tool("b", "y")}
		read.observe("fs", listed, usual, terms{}, nil, noon)
		if read.wouldChange(listed, usual, terms{}, nil) {
			t.Error("what was taken down would be taken down again")
		}
		for _, e := range read.Tools {
			if e.current() == nil {
				t.Error("an entry without a definition")
			}
		}
	})
}
