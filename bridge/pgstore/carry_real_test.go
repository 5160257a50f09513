//go:build real

package pgstore

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/ledger"
)

// A store that is handed over is the same store, in whatever kind it is kept.
func TestRealCarried(t *testing.T) {
	o := place()
	db := begin(t, o)
	for i := range 3 * ledger.CarriedRows / 1000 {
		var all []ledger.Record
		for range 1000 {
			all = append(all, ledger.Record{Event: ledger.Intent, Run: "r", Call: i + 1, Server: "s", Tool: "t\x00"})
		}
		if err := db.Record(t.Context(), all...); err != nil {
			t.Fatal(err)
		}
	}
	entries := []ledger.JournalEntry{{Run: "r", Kind: ledger.Began, Owner: "x", Configuration: "conf", Until: time.Unix(9, 0), Shared: "tools", Common: []byte("common"), Body: []byte("script")},
		{Run: "r", Kind: ledger.Sent, Owner: "x", Call: 1, Body: []byte("args")}}
	if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "r", Grant: "g", GrantUses: 1, Journal: entries}); err != nil {
		t.Fatal(err)
	}
	head, err := db.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantRun, want, err := db.Read(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	from, err := Carry(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to := place()
	to.Secret = []byte("another secret, and the same key")
	if err := Receive(t.Context(), to, from); err != nil {
		t.Fatal(err)
	}
	if err := Receive(t.Context(), to, from); err == nil || !strings.Contains(err.Error(), "has rows already") {
		t.Errorf("it was written twice: %v", err)
	}
	other := place()
	begin(t, other)
	if err := Receive(t.Context(), other, from); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("it was written over another: %v", err)
	}
	again := begin(t, to)
	if report, err := again.Verify(t.Context(), &head); err != nil || !report.Whole || report.Hash != head.Hash {
		t.Errorf("verify: %+v, %v", report, err)
	}
	run, got, err := again.Read(t.Context(), "r")
	if diff := cmp.Diff(wantRun, run); err != nil || diff != "" {
		t.Errorf("the run (-want +got), %v:\n%s", err, diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("its entries (-want +got):\n%s", diff)
	}
	if err := again.Record(t.Context(), ledger.Record{Event: ledger.Intent, Grant: "g", GrantUses: 1}); err == nil {
		t.Error("a grant is used once more than it may be")
	}
	put(t, again, 1)
}

// BenchmarkRealRecord is a commit of one record and of eight at a time; package sqlstore
// has the same of a file.
func BenchmarkRealRecord(b *testing.B) {
	for _, writers := range []int{1, 8} {
		b.Run(map[int]string{1: "one", 8: "eight"}[writers], func(b *testing.B) {
			db := begin(b, place())
			b.SetParallelism(writers)
			r := ledger.Record{Event: ledger.Intent, Run: "r", Call: 1, Server: "fs", Tool: "read", Durable: true}
			if writers == 1 {
				for b.Loop() {
					if err := db.Record(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if err := db.Record(b.Context(), r); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
