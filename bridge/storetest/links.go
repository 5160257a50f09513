package storetest

import (
	"fmt"
	"testing"

	"codemode-bridge/bridge/ledger"
)

// linksAreRows: what LinksAfter returns is the rows as they are chained, in pages.
func linksAreRows(t *testing.T, open open) {
	s := open(ticking())
	linked, ok := s.(ledger.Linked)
	if !ok {
		t.Fatal("its rows cannot be read as they are kept")
	}
	for i := range 30 {
		if err := s.Record(t.Context(), ledger.Record{Event: ledger.Intent, Tool: fmt.Sprint("tool", i)}); err != nil {
			t.Fatal(err)
		}
	}
	var prev ledger.Hash
	next := int64(1)
	for {
		store, links, err := linked.LinksAfter(t.Context(), next-1, 7, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(7, 31-int(next)); len(links) != want {
			t.Fatalf("%d rows after %d, want %d", len(links), next-1, want)
		}
		if len(links) == 0 {
			break
		}
		for _, l := range links {
			if l.Seq != next || ledger.HashRow(store, l.Seq, prev, l.Body) != l.Hash || l.Seal == (ledger.Seal{}) {
				t.Fatalf("row %d, want row %d, sealed and chained to the one before", l.Seq, next)
			}
			prev, next = l.Hash, next+1
		}
	}
	if last, hash, err := s.Head(t.Context()); err != nil || last != next-1 || hash != prev {
		t.Errorf("the head is %d %s (%v), the last row %d %s", last, hash, err, next-1, prev)
	}
	if _, links, err := linked.LinksAfter(t.Context(), 0, 7, 1); err != nil || len(links) != 1 {
		t.Errorf("%d rows for one byte, %v", len(links), err)
	}
}
