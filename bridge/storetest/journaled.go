package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/ledger"
)

// A Journaled is a store that keeps journals too.
type Journaled interface {
	ledger.Store
	ledger.Journal
}

var until = time.Date(2026, 11, 22, 8, 0, 0, 5, time.FixedZone("", 3600))

func begun(run, owner string) ledger.JournalEntry {
	return ledger.JournalEntry{Run: run, Kind: ledger.Began, Owner: owner, Configuration: "conf", Until: until, Body: []byte("script of " + run)}
}

func sent(run, owner string, call int) ledger.JournalEntry {
	return ledger.JournalEntry{Run: run, Kind: ledger.Sent, Owner: owner, Call: call, Body: fmt.Appendf(nil, "args %d", call)}
}

func settled(run, owner string, call int) ledger.JournalEntry {
	return ledger.JournalEntry{Run: run, Kind: ledger.Replied, Owner: owner, Call: call, Body: fmt.Appendf(nil, "answer %d", call)}
}

// journalOf reads a journal that is there, without the time it began.
func journalOf(t *testing.T, s Journaled, run string) (ledger.JournaledRun, []ledger.JournalEntry) {
	t.Helper()
	k, entries, err := s.Read(t.Context(), run)
	must(t, err)
	if k.Began.IsZero() || k.Began.Location() != time.UTC {
		t.Errorf("run %s began at %v", run, k.Began)
	}
	k.Began = time.Time{}
	return k, entries
}

// wholeBytes compares a body at once: some are too long to do it byte by byte.
var wholeBytes = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

// hasEntries checks a journal's entries by kind and call.
func hasEntries(t *testing.T, s Journaled, run string, want ...string) {
	t.Helper()
	_, entries := journalOf(t, s, run)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %d", e.Kind, e.Call))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal of %s (-want +got):\n%s", run, diff)
	}
}

func hasNone(t *testing.T, s Journaled, run string) {
	t.Helper()
	if k, entries, err := s.Read(t.Context(), run); !errors.Is(err, ledger.ErrNoJournal) || len(entries) > 0 || k != (ledger.JournaledRun{}) {
		t.Errorf("run %s should have no journal: %+v, %d entries, %v", run, k, len(entries), err)
	}
}

func runsOf(t *testing.T, s Journaled) []string {
	t.Helper()
	all, err := s.Runs(t.Context())
	must(t, err)
	names := []string{}
	for _, k := range all {
		names = append(names, k.Run)
	}
	return names
}
