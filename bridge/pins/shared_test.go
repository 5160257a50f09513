package pins

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/documents"
)

// machines returns two views of the same pins, as two machines have them.
func machines(t *testing.T) (d documents.Store, a, b *Store) {
	d = documents.Memory()
	return d, OpenShared(d, "database x", t.TempDir()), OpenShared(d, "database x", t.TempDir())
}

func waits(t *testing.T, s *Store) (names []string) {
	t.Helper()
	all, err := s.Unreviewed([]string{"fs"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		names = append(names, w.Tool+" "+string(w.State)+" "+w.Digest)
	}
	return names
}

// What one machine accepted, another goes on with, and a fresh one asks nobody.
func TestSharedDecisions(t *testing.T) {
	d, a, b := machines(t)
	one, two := tool("read", "Reads."), tool("read", "Reads more.")
	observe(t, a, usual, one)
	all, events := observe(t, b, usual, one)
	stands(t, all["read"], Accepted, Allow, "")
	if events != nil {
		t.Errorf("what another machine knew was told again: %+v", events)
	}
	all, _ = observe(t, b, usual, two)
	stands(t, all["read"], Changed, Ask, "changed")
	if err := b.Accept("fs", "read", two.Digest(), "ann", later); err != nil {
		t.Fatal(err)
	}
	all, _ = observe(t, a, usual, two)
	stands(t, all["read"], Accepted, Allow, "")
	all, _ = observe(t, OpenShared(d, "database x", ""), shut, two)
	stands(t, all["read"], Accepted, Allow, "")
	if err := a.Block("fs", "read", two.Digest(), "bob", later); err != nil {
		t.Fatal(err)
	}
	all, _ = observe(t, b, usual, two)
	stands(t, all["read"], Blocked, Quarantine, "bob")
}

// Machines that list different tools do not write in turns for ever, and what was not
// accepted is held where it is listed.
func TestMachinesThatDiffer(t *testing.T) {
	for _, rules := range []Rules{usual, shut, {Allow, Allow}} {
		d, a, b := machines(t)
		one, two, more := tool("read", "Reads."), tool("read", "Reads more."), tool("more", "More.")
		if err := a.Pin("fs", []catalog.Definition{one}, "ann", noon); err != nil {
			t.Fatal(err)
		}
		lists := map[*Store][]catalog.Definition{a: {one}, b: {two, more}}
		round := func() (text string) {
			for _, s := range []*Store{a, b} {
				all, _ := observe(t, s, rules, lists[s]...)
				for _, d := range lists[s] {
					accepted := rules.Changed == Allow || d.Name == "read" && s == a || d.Name == "more" && rules.New == Allow
					if (all[d.Name].Reaction == Allow) != accepted {
						t.Errorf("%+v: %s stands as %+v", rules, d.Description, all[d.Name])
					}
				}
			}
			body, err := d.Read(t.Context(), documentName("fs"))
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		round()
		before := round()
		for range 3 {
			if now := round(); now != before {
				t.Fatalf("%+v: they write in turns:\n%s\n%s", rules, before, now)
			}
		}
		if rules.Changed == Allow {
			continue
		}
		// Either machine can review what the other lists, also after it started again.
		a = OpenShared(d, "database x", "")
		lists[a] = []catalog.Definition{one}
		round()
		want := []string{"read changed " + two.Digest()}
		if rules.New != Allow {
			want = append([]string{"more new " + more.Digest()}, want...)
		}
		if got := waits(t, a); !slices.Equal(got, want) {
			t.Errorf("%+v: there wait %q, want %q", rules, got, want)
		}
		if err := a.Accept("fs", "read", two.Digest(), "ann", later); err != nil {
			t.Fatal(err)
		}
		all, _ := observe(t, b, rules, lists[b]...)
		stands(t, all["read"], Accepted, Allow, "")
		all, _ = observe(t, a, rules, one)
		if all["read"].Reaction == Allow {
			t.Error("what was accepted before is still let in where it is listed")
		}
		// What a machine itself has listed, and lists no more, is gone.
		observe(t, b, rules, two)
		if got := waits(t, b); slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "more") }) {
			t.Errorf("%+v: what nobody lists waits: %q", rules, got)
		}
	}
}

// A store that is new begins with what the machine had, once.
func TestSharedBeginsWithOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pins")
	one, two := tool("read", "Reads."), tool("read", "Reads more.")
	observe(t, Open(dir), usual, one)
	d := documents.Memory()
	for _, begin := range []func(*Store){func(*Store) {}, func(s *Store) { observe(t, s, usual, two) }} {
		s := OpenShared(d, "database x", dir)
		begin(s)
		all, err := s.Judge("fs", []catalog.Definition{two}, usual)
		if err != nil {
			t.Fatal(err)
		}
		stands(t, all["read"], Changed, Ask, "changed")
	}
	all, _ := observe(t, OpenShared(d, "database x", ""), usual, one) // elsewhere
	stands(t, all["read"], Accepted, Allow, "")
	s := OpenShared(d, "database x", dir)
	if err := s.Forget("fs"); err != nil {
		t.Fatal(err)
	}
	all, _ = observe(t, s, shut, one)
	stands(t, all["read"], New, Quarantine, "new")
}

// A brokenStore is one whose database is gone.
type brokenStore struct {
	documents.Store
	err error
}

func (s *brokenStore) Read(ctx context.Context, name string) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Read(ctx, name)
}

func (s *brokenStore) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.Change(ctx, name, change)
}

// While the store is gone nothing is accepted; when it is back, somebody looks again.
func TestSharedStoreGone(t *testing.T) {
	dir := t.TempDir()
	one := tool("read", "Reads.")
	observe(t, Open(dir), usual, one) // what the machine had does not count instead
	synctest.Test(t, func(t *testing.T) {
		broken := &brokenStore{Store: documents.Memory(), err: errors.New("the database is gone")}
		s := OpenShared(broken, "database x", dir)
		all, _, err := s.Observe("fs", []catalog.Definition{one}, Rules{Allow, Allow}, noon)
		if err == nil || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("the error is %v", err)
		}
		stands(t, all["read"], Unknown, Ask, "cannot be read")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		looked := make(chan struct{}, 1)
		go s.Watch(ctx, func() {
			select {
			case looked <- struct{}{}:
			default:
			}
		})
		<-looked
		synctest.Wait()
		s.mu.Lock()
		broken.err = nil
		s.mu.Unlock()
		<-looked
		all, _ = observe(t, s, usual, one)
		stands(t, all["read"], Accepted, Allow, "")
	})
}
