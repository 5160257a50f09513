//go:build real

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A thousand runs are paused: they cost no process, are listed, and any of them
// goes on.
func TestRealThousandPausedRuns(t *testing.T) {
	const runs = 1000
	f := newFleet()
	one := f.bridge(t, "one", queued())
	var ids []string
	for i := range runs {
		id, err := one.Start(t.Context(), "", fmt.Sprintf(`const a = await codemode.b__echo({n: %d}); return a + await codemode.a__echo({n: -1})`, i), nil, "ci")
		if err != nil {
			t.Fatal(err)
		}
		waitUntil(t, func() bool { r, ok := one.roster.lookup(id); return ok && r.suspend() })
		waitUntil(t, func() bool { _, live := one.roster.lookup(id); return !live })
		ids = append(ids, id)
	}
	if st := one.Status(t.Context()); st.Paused != runs || st.Runs != 0 || len(one.Runs(t.Context())) != runs {
		t.Errorf("%d are paused and %d run, %d are listed", st.Paused, st.Runs, len(one.Runs(t.Context())))
	}
	for _, e := range f.open(t, runs) {
		f.answer(t, e, yes)
	}
	for i := 0; i < runs; i += 50 {
		res, err := one.Resume(t.Context(), ids[i], "the test", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(res.StructuredContent.(json.RawMessage)), fmt.Sprintf(`b{\"n\":%d}{\"n\":-1}`, i); !strings.Contains(got, want) {
			t.Errorf("run %d answers %s", i, got)
		}
	}
}

// A journal of a hundred megabytes is kept where it may be, and read again.
func TestRealLargeJournal(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued(), func(o *Options) { o.JournalBytes = 200 << 20 })
	b.up.tools["b__echo"] = func(context.Context, json.RawMessage) (string, error) {
		return text(strings.Repeat("0123456789abcdef", 5<<16)), nil
	}
	id := f.startPaused(t, b, `let n = 0; for (let i = 0; i < 20; i++) n += (await codemode.b__echo({i})).length; return n + await codemode.a__echo({n: 1})`, 1)
	waitUntil(t, func() bool { r, ok := b.roster.lookup(id); return ok && r.suspend() })
	waitUntil(t, func() bool { _, live := b.roster.lookup(id); return !live })
	kept, _, err := f.records.Read(t.Context(), id)
	if err != nil || kept.Bytes < 100<<20 {
		t.Fatalf("%d bytes are kept, %v", kept.Bytes, err)
	}
	f.answer(t, f.open(t, 1)[0], yes)
	res, err := b.Resume(t.Context(), id, "the test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.StructuredContent.(json.RawMessage)); !strings.Contains(got, `"104857600{\"n\":1}"`) {
		t.Errorf("it answers %s", got)
	}
	if n := len(b.up.made()); n != 21 {
		t.Errorf("%d calls were made", n)
	}
}
