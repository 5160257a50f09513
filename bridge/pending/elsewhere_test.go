package pending

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/bridge/documents"
)

// A fleet is machines with one store.
type fleet struct {
	*testing.T
	kinds map[string]documents.Store // by the id of the configuration
	err   error                      // of every read
}

func newFleet(t *testing.T) *fleet {
	return &fleet{T: t, kinds: map[string]documents.Store{}}
}

type failing struct {
	documents.Store
	f *fleet
}

func (d failing) Read(ctx context.Context, name string) ([]byte, error) {
	if d.f.err != nil {
		return nil, d.f.err
	}
	return d.Store.Read(ctx, name)
}

// machine returns a machine whose file has a text; its folder is its own.
func (f *fleet) machine(first text) (files, *start) {
	f.Helper()
	m := newFiles(f.T, first)
	return m, f.on(m.app("config.json", ""))
}

func (f *fleet) on(a *start) *start {
	a.Shared = func(cfg *config.Config) confirmed.Documents {
		if cfg.ID == "" {
			return nil
		}
		if f.kinds[cfg.ID] == nil {
			f.kinds[cfg.ID] = documents.Memory()
		}
		return failing{f.kinds[cfg.ID], f}
	}
	return a
}

// confirm is an approver's answer on one machine.
func (f *fleet) confirm(a *start, by string, at time.Time) {
	f.Helper()
	cfg, err := a.load()
	if err == nil {
		_, err = a.Keep(cfg, by, "page", at)
	}
	if err != nil {
		f.Fatal(err)
	}
}

// waits checks whether the file of a machine waits, because of the words.
func (m files) waits(a *start, running *config.Config, words string) {
	m.Helper()
	if _, why := m.taken(a, running); why == "" || !strings.Contains(why, words) {
		m.Errorf("it waits because %q, want %q", why, words)
	}
}

func (m files) runs(a *start, running *config.Config) *config.Config {
	m.Helper()
	cfg, why := m.taken(a, running)
	if why != "" {
		m.Errorf("it waits because %s", why)
	}
	return cfg
}

var (
	loose   = drop("evaluation", "profiles", "p", "denylist")
	looser  = set("relaxed", "evaluation", "defaultProfile")
	tighter = set([]any{"kept__drop_*", "kept__send"}, "evaluation", "profiles", "p", "denylist")
	soon    = time.Now().Add(time.Hour)
)

// A loosening edit waits on every machine, and is confirmed once.
func TestConfirmedElsewhere(t *testing.T) {
	f := newFleet(t)
	first := confirmedText()
	m, a := f.machine(first)
	n, b := f.machine(first)
	m.runs(a, nil)
	runningB := n.runs(b, nil)
	next := first.with(loose).String()
	m.write("config.json", next)
	n.write("config.json", next)
	m.waits(a, nil, "")
	n.waits(b, runningB, "")
	f.confirm(a, "ann", soon)
	runningB = n.runs(b, runningB)
	m.runs(a, nil)
	fresh, c := f.machine(first.with(loose))
	fresh.runs(c, nil)

	// It is known here by now, whatever becomes of the documents.
	f.err = errors.New("the database is gone")
	for _, known := range []*start{b, c} {
		if inForce, file, err := known.begin(); err != nil || inForce != file {
			t.Errorf("what was confirmed elsewhere waits again: %v", err)
		}
	}
	f.err = nil

	// What is looser still waits, everywhere, and so does what was in force before if that
	// is looser.
	n.write("config.json", first.with(loose, looser).String())
	n.waits(b, runningB, "")
	n.waits(b, nil, "")
	fresh, c = f.machine(first.with(loose, looser))
	fresh.waits(c, nil, "")
	if inForce, file, err := c.begin(); err != nil || inForce == file || inForce.File != file.File || inForce.Digest != runningB.Digest {
		t.Errorf("a fresh machine goes on with %v: %v", inForce, err)
	}
}

// What an approver tightened elsewhere holds here, also against what was confirmed here
// before.
func TestTightenedElsewhere(t *testing.T) {
	f := newFleet(t)
	m, a := f.machine(confirmedText())
	n, b := f.machine(confirmedText())
	m.runs(a, nil)
	running := n.runs(b, nil)
	m.write("config.json", confirmedText().with(tighter).String())
	f.confirm(a, "ann", soon)
	n.write("config.json", confirmedText().with(set("deny", "evaluation", "profiles", "relaxed", "default")).String())
	n.waits(b, running, "") // its list is the one before
	n.write("config.json", confirmedText().with(tighter, set("deny", "evaluation", "profiles", "relaxed", "default")).String())
	n.runs(b, running) // tighter than both
	// The last confirmation counts, wherever it was.
	n.write("config.json", confirmedText().with(loose).String())
	n.waits(b, nil, "")
	f.confirm(b, "bob", soon.Add(time.Hour))
	n.runs(b, nil)
	m.write("config.json", confirmedText().with(loose).String())
	m.runs(a, nil)
}

// What nobody confirmed is no excuse elsewhere: neither what a machine found first, nor
// what it took because it loosens nothing there.
func TestFoundElsewhere(t *testing.T) {
	f := newFleet(t)
	m, a := f.machine(confirmedText().with(loose))
	m.runs(a, nil)
	n, b := newFiles(t, confirmedText()), (*start)(nil)
	b = n.app("config.json", "")
	n.runs(b, nil) // before it had the store
	b = f.on(b)
	n.runs(b, nil)
	n.write("config.json", confirmedText().with(loose).String())
	n.waits(b, nil, "")

	f = newFleet(t)
	m, a = f.machine(confirmedText())
	m.runs(a, nil)
	f.confirm(a, "ann", soon)
	m.write("config.json", confirmedText().with(tighter).String())
	m.runs(a, nil)
	fresh, c := f.machine(confirmedText())
	fresh.runs(c, nil)
	m.write("config.json", confirmedText().String())
	m.runs(a, nil) // the text that ann confirmed
}

// Another id is another configuration, and becomes one only where an approver says so.
func TestElsewhereWithAnotherID(t *testing.T) {
	f := newFleet(t)
	play := confirmedText().with(set("play", "id"))
	m, a := f.machine(play)
	m.runs(a, nil)
	m.write("config.json", play.with(loose).String())
	f.confirm(a, "ann", soon)
	n, b := f.machine(confirmedText())
	running := n.runs(b, nil)
	n.write("config.json", play.with(loose).String())
	n.waits(b, nil, "id")
	n.waits(b, running, "id")
	n.write("config.json", confirmedText().with(drop("id")).String())
	n.waits(b, nil, "id")
}

// Without the documents a machine that knows the file compares as ever, and one that does
// not know it does not begin.
func TestElsewhereUnreadable(t *testing.T) {
	f := newFleet(t)
	m, a := f.machine(confirmedText())
	m.runs(a, nil)
	for _, damaged := range []bool{false, true} {
		f.err = errors.New("the database is gone")
		if damaged {
			f.err = nil
			if err := f.kinds["work"].Change(t.Context(), "confirmed.json", func([]byte) ([]byte, error) { return []byte(`{"version": 9}`), nil }); err != nil {
				t.Fatal(err)
			}
		}
		m.write("config.json", confirmedText().with(loose).String())
		cfg, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		if c, err := a.Judge(cfg, nil); err != nil || c == nil {
			t.Errorf("a loosening edit: %v, %v", c, err)
		}
		_, b := f.machine(confirmedText())
		cfg, err = b.load()
		if err != nil {
			t.Fatal(err)
		}
		var unreadable *UnreadableError
		if _, err := b.Judge(cfg, nil); !errors.As(err, &unreadable) {
			t.Errorf("a fresh machine: %v", err)
		}
		if _, err := b.Keep(cfg, "", "", time.Now()); err == nil {
			t.Error("what was not told to the others is kept")
		}
	}
}

// An overlay is the same wherever its file lies, and no excuse for the file without it.
func TestOverlayElsewhere(t *testing.T) {
	f := newFleet(t)
	overlay := `{"evaluation": {"profiles": {"p": {"denylist": []}}}}`
	with := func() (files, *start) {
		m := newFiles(t, confirmedText())
		m.write("config.prod.json", overlay)
		return m, f.on(m.app("config.json", "prod"))
	}
	m, a := with()
	m.runs(a, nil)
	f.confirm(a, "ann", soon)
	n, b := with()
	n.runs(b, nil)
	plain := f.on(n.app("config.json", ""))
	n.runs(plain, nil)
	if err := os.WriteFile(filepath.Join(n.folder, "config.json"), []byte(confirmedText().with(loose).String()), 0o600); err != nil {
		t.Fatal(err)
	}
	n.waits(b, nil, "")
	n.waits(plain, nil, "")
}

// What waits is named alike on all machines that share it.
func TestSharedKey(t *testing.T) {
	const store = `"store": "postgres://db.example/x"`
	for _, row := range []struct{ text, want string }{
		{`{"id": "team", ` + store + `}`, "id team"}, {`{"id": "team"}`, "config.json"}, {`{` + store + `}`, "config.json"},
	} {
		m := newFiles(t, text{})
		m.write("config.json", row.text)
		cfg, err := m.app("config.json", "").load()
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(Key(cfg)); got != row.want {
			t.Errorf("%s is named %q", row.text, got)
		}
	}
}
