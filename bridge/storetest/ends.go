package storetest

import (
	"errors"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
)

func endedIsForgotten(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1)))
	must(t, a.Append(t.Context(), begun("other", "x"), sent("other", "x", 7)))
	must(t, b.Record(t.Context(), ledger.Record{Event: ledger.RunEnded, Run: "r", Journal: []ledger.JournalEntry{{Run: "r", Kind: ledger.Ended, Owner: "x"}}}))
	hasNone(t, a, "r")
	hasEntries(t, a, "other", "began 0", "sent 7")
	must(t, a.Append(t.Context(), begun("r", "y"))) // nothing of the first is left
	hasEntries(t, b, "r", "began 0")
}

// endRemovesTheRest: entries that are stored together with the end of their run are checked like all
// others, and nothing of them is left.
func endRemovesTheRest(t *testing.T, a, b Journaled) {
	end := func(owner string) ledger.JournalEntry {
		return ledger.JournalEntry{Run: "r", Kind: ledger.Ended, Owner: owner}
	}
	under := func(e ledger.JournalEntry, lease int64) ledger.JournalEntry { e.Lease = lease; return e }
	kept := end("x")
	kept.Until = until
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1), begun("other", "x")))
	for name, entries := range map[string][]ledger.JournalEntry{
		"what comes with the end is another's":    {settled("r", "y", 1), end("x")},
		"so is the end":                           {settled("r", "x", 1), end("y")},
		"it is of a lease that the run never had": {under(settled("r", "x", 1), 7), end("x")},
		"so is the end, of a lease":               {settled("r", "x", 1), under(end("x"), 7)},
		"what comes after the end is refused":     {settled("r", "x", 1), end("x"), sent("r", "x", 2)},
		"what another run has is refused":         {settled("r", "x", 1), end("x"), sent("none", "x", 1)},
		"a second end, of a run that is kept":     {settled("r", "x", 1), kept, end("x")},
		"it comes after a beginning that is none": {settled("r", "x", 1), begun("r", "x"), sent("r", "x", 2), end("x")},
		"what comes before it, and after another": {sent("r", "x", 2), end("x"), settled("r", "x", 1), end("x")},
	} {
		for _, s := range []Journaled{a, b} {
			if err := s.Record(t.Context(), ledger.Record{Event: ledger.RunEnded, Run: "r", Journal: entries}); err == nil {
				t.Errorf("%s: it was recorded", name)
			}
		}
		hasEntries(t, a, "r", "began 0", "sent 1")
	}
	if got := rows(t, a, ledger.Query{}); len(got) != 0 {
		t.Errorf("%d records were kept without their entries", len(got))
	}
	outcome := ledger.Record{Event: ledger.Outcome, Run: "r", Journal: []ledger.JournalEntry{settled("r", "x", 1), sent("other", "x", 1)}}
	must(t, b.Record(t.Context(), outcome, ledger.Record{Event: ledger.RunEnded, Run: "r", Journal: []ledger.JournalEntry{under(end("x"), 1)}}))
	hasNone(t, a, "r")
	hasEntries(t, b, "other", "began 0", "sent 1")
	must(t, a.Append(t.Context(), sent("other", "x", 2))) // in its place
	must(t, a.Append(t.Context(), begun("r", "y"), sent("r", "y", 1), end("y"), begun("r", "z"), sent("r", "z", 5)))
	hasEntries(t, b, "r", "began 0", "sent 5")
	hasEntries(t, b, "other", "began 0", "sent 1", "sent 2")
	whole(t, b, nil)
}

func finishedIsKept(t *testing.T, a, b Journaled) {
	must(t, a.Append(t.Context(), begun("r", "x"), sent("r", "x", 1)))
	_, err := b.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.CancelRequestedBy = "bob"; return nil })
	must(t, err)
	later := until.Add(time.Hour)
	must(t, a.Append(t.Context(), ledger.JournalEntry{Run: "r", Kind: ledger.Ended, Owner: "x", Until: later, Body: []byte("result")}))
	hasEntries(t, b, "r", "began 0", "sent 1", "ended 0")
	k, entries := journalOf(t, b, "r")
	if want := (ledger.JournaledRun{Run: "r", Lease: 1, State: ledger.Finished, Configuration: "conf", Until: later.UTC(), Bytes: k.Bytes}); k != want || string(entries[2].Body) != "result" {
		t.Errorf("a finished run is %+v, its last entry %q", k, entries[2].Body)
	}
	for _, s := range []Journaled{a, b} {
		if err := s.Append(t.Context(), sent("r", "x", 2)); !errors.Is(err, ledger.ErrNotOwner) {
			t.Errorf("writing to a finished run: %v", err)
		}
	}
}
