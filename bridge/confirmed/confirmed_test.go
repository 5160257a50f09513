package confirmed

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bench is a store, and a folder with a configuration file.
func bench(t *testing.T) (s *Store, folder, file string) {
	t.Helper()
	folder = t.TempDir()
	file = filepath.Join(folder, "config.json")
	write(t, file, "{}")
	return Open(filepath.Join(t.TempDir(), "confirmed")), folder, file
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, s *Store, file, environment string, its Standing) {
	t.Helper()
	if err := s.Change(file, false, func(r *Record) error { r.Environments[environment] = its; return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestRecord(t *testing.T) {
	s, _, file := bench(t)
	if r, err := s.Read(file); err != nil || len(r.Environments) != 0 {
		t.Fatalf("before anything is kept: %+v, %v", r, err)
	}
	one := Standing{Confirmed: Texts{Name: file, File: `{"a": "${A}"}`}, By: "ann", Channel: "page", At: time.Unix(1, 0).UTC()}
	taken := Texts{Name: file, File: `{}`, OverlayName: "o", Overlay: "{}"}
	two := Standing{Confirmed: one.Confirmed, Taken: &taken, At: time.Unix(2, 0).UTC()}
	keep(t, s, file, "", one)
	keep(t, s, file, "/o", two)
	r, err := Open(s.dir).Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Standing{"": one, "/o": two}, r.Environments); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if one.InForce() != one.Confirmed || two.InForce() != taken {
		t.Error("not what was taken over last is in force")
	}
	for path, want := range map[string]os.FileMode{s.dir: 0o700, s.path(Resolve(file)): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&^want != 0 {
			t.Errorf("others can read %s: %v, %v", path, info.Mode(), err)
		}
	}
	stop := errors.New("stop")
	if err := s.Change(file, false, func(r *Record) error { delete(r.Environments, ""); return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of a change is %v", err)
	}
	if r, err := s.Read(file); err != nil || len(r.Environments) != 2 {
		t.Errorf("a change that failed changed something: %+v, %v", r, err)
	}
}

// A file is one file, whichever way it is named.
func TestLinksShareARecord(t *testing.T) {
	s, folder, file := bench(t)
	keep(t, s, file, "", Standing{By: "ann"})
	soft, hard, around := filepath.Join(folder, "soft.json"), filepath.Join(folder, "hard.json"), filepath.Join(folder, "around")
	for _, err := range []error{os.Symlink(file, soft), os.Link(file, hard), os.Symlink(folder, around)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{soft, hard, filepath.Join(around, "config.json"), filepath.Join(folder, ".", "config.json")} {
		if r, err := s.Read(name); err != nil || r.Environments[""].By != "ann" {
			t.Errorf("of %s is kept %+v, %v", name, r, err)
		}
		keep(t, s, name, name, Standing{})
	}
	if r, err := s.Read(file); err != nil || len(r.Environments) != 5 {
		t.Errorf("what was kept by other names: %+v, %v", r, err)
	}
	other := filepath.Join(folder, "other.json")
	write(t, other, "{}")
	if r, err := s.Read(other); err != nil || len(r.Environments) != 0 {
		t.Errorf("of another file is kept %+v, %v", r, err)
	}
}

// A name that leads to another file is remembered until that is confirmed.
func TestRecordsOfAName(t *testing.T) {
	s, folder, file := bench(t)
	link := func(to string) string {
		t.Helper()
		name := filepath.Join(folder, "current.json")
		os.Remove(name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	files := func(name string) (all []string) {
		t.Helper()
		records, err := s.Records(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			all = append(all, filepath.Base(r.File))
		}
		return all
	}
	is := func(name string, want ...string) {
		t.Helper()
		if got := files(name); !slices.Equal(got, want) {
			t.Errorf("compared with %q, want %q", got, want)
		}
	}
	current := link(file)
	is(current)
	keep(t, s, current, "", Standing{})
	is(current, "config.json")
	for _, other := range []string{"b.json", "c.json"} {
		write(t, filepath.Join(folder, other), "{}")
	}
	link("b.json")
	is(current, "config.json")
	if s.Points(current, Resolve(current)) {
		t.Error("it leads elsewhere, and that is not kept yet")
	}
	keep(t, s, current, "", Standing{})
	is(current, "b.json", "config.json")
	is(file, "config.json")
	if !s.Points(current, Resolve(current)) {
		t.Error("where it leads is not kept")
	}
	link("c.json")
	is(current, "b.json", "config.json")
	if err := s.Change(current, true, func(r *Record) error { r.Environments[""] = Standing{By: "ann"}; return nil }); err != nil {
		t.Fatal(err)
	}
	is(current, "c.json")
	pointers, err := filepath.Glob(filepath.Join(s.dir, "*.name"))
	if err != nil || len(pointers) == 0 {
		t.Fatal(pointers, err)
	}
	for _, p := range pointers {
		write(t, p, "{")
	}
	if all, err := s.Records(current); err == nil {
		t.Errorf("a name whose pointer is damaged led to %+v", all)
	}
}

// What cannot be read is not taken for nothing, unless it is begun anew.
func TestDamagedRecord(t *testing.T) {
	s, _, file := bench(t)
	keep(t, s, file, "", Standing{By: "ann"})
	for _, text := range []string{"", "{", `{"version": 2, "environments": {"": {}}}`, `{"version": 1}`, "null"} {
		write(t, s.path(Resolve(file)), text)
		if r, err := s.Read(file); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
		if err := s.Change(file, false, func(*Record) error { return nil }); err == nil {
			t.Errorf("%q is changed", text)
		}
	}
	if err := s.Change(file, true, func(r *Record) error { r.Environments[""] = Standing{By: "bob"}; return nil }); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Read(file); err != nil || r.Environments[""].By != "bob" {
		t.Errorf("begun anew it is %+v, %v", r, err)
	}
}

func TestChangesAtOneTime(t *testing.T) {
	s, _, file := bench(t)
	var all sync.WaitGroup
	for _, environment := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			if err := Open(s.dir).Change(file, false, func(r *Record) error { r.Environments[environment] = Standing{}; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if r, err := s.Read(file); err != nil || len(r.Environments) != 4 {
		t.Errorf("kept %+v, %v", r, err)
	}
}
