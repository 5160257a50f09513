package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/ledger"
)

// together: records that are given at once are there with their entries and uses of
// grants, in their order and with nothing between them, or none of them is.
func together(t *testing.T, a, b Journaled) {
	intent := use("g", 1, 1)
	intent.Journal = []ledger.JournalEntry{begun("r", "x"), sent("r", "x", 1)}
	must(t, a.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "r"}, ledger.Record{Event: ledger.Preview, Run: "r"}, intent))
	must(t, a.Record(t.Context()))
	outcome := ledger.Record{Event: ledger.Outcome, Run: "r", Call: 1, Journal: []ledger.JournalEntry{settled("r", "x", 1)}}
	stranger := ledger.Record{Event: ledger.Intent, Run: "r", Call: 2, Journal: []ledger.JournalEntry{sent("r", "somebody else", 2)}}
	for _, row := range []struct {
		name string
		all  []ledger.Record
		want error
	}{
		{"the last has a stranger's entry", []ledger.Record{outcome, stranger}, ledger.ErrNotOwner},
		{"the first has a stranger's entry", []ledger.Record{stranger, outcome}, ledger.ErrNotOwner},
		{"the last uses what is used up", []ledger.Record{outcome, use("g", 2, 1)}, ledger.ErrUsedUp},
		{"the first uses what is used up", []ledger.Record{use("g", 2, 1), outcome}, ledger.ErrUsedUp},
		{"both use what may be used once", []ledger.Record{use("h", 2, 1), outcome, use("h", 3, 1)}, ledger.ErrUsedUp},
	} {
		for _, s := range []Journaled{a, b} {
			if err := s.Record(t.Context(), row.all...); !errors.Is(err, row.want) {
				t.Errorf("%s: %v", row.name, err)
			}
		}
	}
	hasEntries(t, b, "r", "began 0", "sent 1")
	must(t, b.Record(t.Context(), outcome, use("h", 2, 1)))
	hasEntries(t, a, "r", "began 0", "sent 1", "settled 1")
	var events []string
	for _, row := range rows(t, a, ledger.Query{}) {
		events = append(events, fmt.Sprint(row.Record.Event, row.Record.Call))
	}
	if diff := cmp.Diff([]string{"run_started0", "preview0", "intent1", "outcome1", "intent2"}, events); diff != "" {
		t.Errorf("recorded are (-want +got):\n%s", diff)
	}
	whole(t, a, nil)
}

// adjacent: what several record at once is not mixed.
func adjacent(t *testing.T, a, b Journaled) {
	const writers, each = 8, 5
	var wait sync.WaitGroup
	for i := range writers {
		s := []Journaled{a, b}[i%2]
		wait.Go(func() {
			for j := range each {
				name := fmt.Sprintf("%d.%d", i, j)
				err := s.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Name: name}, ledger.Record{Event: ledger.Outcome, Name: name}, ledger.Record{Event: ledger.Outcome, Name: name})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	all := rows(t, b, ledger.Query{})
	if len(all) != 3*writers*each {
		t.Fatalf("%d rows are there", len(all))
	}
	for three := range slices.Chunk(all, 3) {
		if three[0].Record.Name != three[1].Record.Name || three[1].Record.Name != three[2].Record.Name {
			t.Errorf("rows %d to %d are of several", three[0].Seq, three[2].Seq)
		}
	}
	whole(t, a, nil)
}
