package pins

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
)

// A notebook keeps records, unless it is full.
type notebook struct {
	full    bool
	records []ledger.Record
}

func (n *notebook) Record(_ context.Context, all ...ledger.Record) error {
	if n.full {
		return ledger.ErrUnavailable
	}
	n.records = append(n.records, all...)
	return nil
}

func (n *notebook) Enqueue(_ context.Context, r ledger.Record) { n.records = append(n.records, r) }

// listed is a store in which server "web" has listed tools that are new.
func listed(t *testing.T, names ...string) *Store {
	t.Helper()
	s := Open("")
	var tools []catalog.Definition
	for _, name := range names {
		tools = append(tools, catalog.Definition{Name: name, Description: "is " + name})
	}
	if _, _, err := s.Observe("web", tools, Rules{New: Quarantine, Changed: Ask}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return s
}

// A decision counts once it is recorded, and for what the person saw.
func TestReviewIsRecordedFirst(t *testing.T) {
	t.Parallel()
	s, book := listed(t, "search"), &notebook{full: true}
	waiting, err := s.Unreviewed([]string{"web"})
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	w, r := waiting[0], Reviewer{Store: s, Recorder: book}
	if err := r.Accept(t.Context(), w, "ann", "page"); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("accepted without a record: %v", err)
	}
	if again, err := s.Unreviewed([]string{"web"}); err != nil || len(again) != 1 {
		t.Errorf("what could not be recorded was decided: %+v, %v", again, err)
	}
	book.full = false
	other := w
	other.Digest = "sha256:another"
	if err := r.Accept(t.Context(), other, "ann", "page"); !errors.Is(err, ErrChanged) {
		t.Errorf("accepted what nobody saw: %v", err)
	}
	other.Tool = "missing"
	if err := r.Block(t.Context(), other, "ann", "page"); !errors.Is(err, ErrUnknown) {
		t.Errorf("blocked what is not there: %v", err)
	}
	if err := r.Block(t.Context(), w, "ann", "page"); err != nil {
		t.Fatal(err)
	}
	if err := r.Accept(t.Context(), w, "bob", "terminal"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rec := range book.records {
		got = append(got, string(rec.Event)+" "+rec.Tool+" by "+rec.Approver+" at "+rec.Channel)
	}
	want := []string{string(ledger.ToolBlocked) + " search by ann at page", string(ledger.ToolAccepted) + " search by bob at terminal"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestChooseTools(t *testing.T) {
	t.Parallel()
	s := listed(t, "search", "fetch")
	all, err := s.Unreviewed([]string{"web"})
	if err != nil {
		t.Fatal(err)
	}
	fetch := NewNamedRow(all[0], Quarantine, func(text string) string { return text })
	isServer := func(name string) bool { return name == "web" }
	for _, row := range []struct {
		names []string
		seen  bool
		err   string // a part of it
	}{
		{[]string{fetch.Named}, true, ""},
		{[]string{fetch.Named, "web__search"}, false, ""},
		{[]string{"web__fetch@sha256:0123"}, false, "12 hex digits at least"},
		{[]string{"web__fetch@sha256:00000000000000000000"}, false, "is not what you saw"},
		{[]string{"web__missing"}, false, "has never listed"},
		{[]string{"other__fetch"}, false, "there is no server"},
		{[]string{"fetch"}, false, "there is no server"},
	} {
		chosen, seen, err := s.Choose(row.names, isServer)
		if row.err == "" && (err != nil || len(chosen) != len(row.names) || seen != row.seen) {
			t.Errorf("%q: %d tools, seen %t, %v", row.names, len(chosen), seen, err)
		}
		if row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%q: %v, want %q", row.names, err, row.err)
		}
	}
}

// A server that lists thousands of tools does not fill the log.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	var events []Event
	for range MaxRecords + 2 {
		events = append(events, Event{Server: "web", Tool: "t", Kind: Appeared, Reaction: Ask})
	}
	all := Records(events)
	if last := all[len(all)-1]; len(all) != MaxRecords+1 || last.Reasons[0] != "and 2 tools more" {
		t.Errorf("%d records, the last says %q", len(all), last.Reasons)
	}
	if got, want := all[0].Reasons[0], "a tool that was not there before: its calls ask"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// A decision is about the definition that was seen, and not about one that the lock file
// objects to.
func TestDecide(t *testing.T) {
	l := newLocked(t, Open(""))
	one, two := tool("read", "Reads."), tool("read", "Reads more.")
	observe(t, l.Store, usual, one)
	observe(t, l.Store, usual, two)
	r := Reviewer{l.Store, new(notebook)}
	if err := r.Decide(t.Context(), true, "fs", "write", two.Digest(), "ann", "page"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a tool that is not there: %v", err)
	}
	if err := r.Decide(t.Context(), true, "fs", "read", one.Digest(), "ann", "page"); !errors.Is(err, ErrChanged) {
		t.Errorf("another definition: %v", err)
	}
	l.has(t, isThis, one)
	var objection *ObjectionError
	if err := r.Decide(t.Context(), true, "fs", "read", two.Digest(), "ann", "page"); !errors.As(err, &objection) || !strings.Contains(err.Error(), "another definition") {
		t.Errorf("what the lock file has otherwise: %v", err)
	}
	if n, blocked, err := l.Count([]string{"fs"}); n != 1 || blocked != 0 || err != nil {
		t.Errorf("%d wait and %d are blocked, %v", n, blocked, err)
	}
	if err := r.Decide(t.Context(), false, "fs", "read", two.Digest(), "ann", "page"); err != nil {
		t.Error(err)
	}
	if n, blocked, err := l.Count([]string{"fs"}); n != 0 || blocked != 1 || err != nil {
		t.Errorf("%d wait and %d are blocked, %v", n, blocked, err)
	}
}
