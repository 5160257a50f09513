package sqlstore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"

	"github.com/google/go-cmp/cmp"
)

// A store that is handed over is the same store: its rows, its checkpoints, its journals,
// how often grants were used.
func TestCarried(t *testing.T) {
	o := place(t, 3)
	db := open(t, o)
	begun := ledger.JournalEntry{Run: "r", Kind: ledger.Began, Owner: "x", Configuration: "conf", Until: time.Unix(9, 0), Shared: "tools", Common: []byte("common"), Body: []byte("script")}
	must(t, db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "r", Call: 1, Grant: "g", GrantUses: 1, Journal: []ledger.JournalEntry{begun,
		{Run: "r", Kind: ledger.Sent, Owner: "x", Call: 1, Body: []byte("args")}}}))
	_, err := db.ChangeRun(t.Context(), "r", func(k *ledger.JournaledRun) error { k.Acquire("y"); k.HandoverRequestedBy = "z"; return nil })
	must(t, err)
	head, err := db.Checkpoint(t.Context())
	must(t, err)
	wantRun, wantEntries, err := db.Read(t.Context(), "r")
	must(t, err)
	closeStore(t, db)

	to := Options{Path: filepath.Join(t.TempDir(), "new", "audit.db")}
	from, err := Carry(t.Context(), o)
	must(t, err)
	must(t, Receive(t.Context(), to, from))
	if err := Receive(t.Context(), to, from); err == nil {
		t.Error("a store was written over another")
	}
	must(t, from.Close())
	if _, err := os.Stat(to.Path + ".copying"); err == nil {
		t.Error("something is left of the copying")
	}
	again := open(t, to)
	if report, err := again.Verify(t.Context(), &head); err != nil || !report.Whole || report.Last != head.Seq || report.Hash != head.Hash {
		t.Errorf("verify: %+v, %v", report, err)
	}
	run, entries, err := again.Read(t.Context(), "r")
	must(t, err)
	if diff := cmp.Diff(wantRun, run); diff != "" {
		t.Errorf("the run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantEntries, entries, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("its entries (-want +got):\n%s", diff)
	}
	if err := again.Record(t.Context(), ledger.Record{Event: ledger.Intent, Grant: "g", GrantUses: 1}); err == nil {
		t.Error("a grant is used once more than it may be")
	}
	must(t, again.Record(t.Context(), ledger.Record{Event: ledger.Outcome}))
}
