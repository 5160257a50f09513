package sqlstore

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/ledger"
)

// Rows are pruned up to the row that says what was pruned before, which then is the first:
// what it says does not lead to it, and the newest such row does, which has not settled.
func TestPrunedUpToAPrunedRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no row moves between the last pruning and the look at it
		db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
		record := func() {
			for range 3 {
				if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * compactAfter)
			synctest.Wait()
		}
		prune := func(before time.Time) {
			if n, err := db.Prune(t.Context(), before); err != nil || n != 3 {
				t.Fatalf("%d rows are pruned, %v", n, err)
			}
		}
		record()
		first := time.Now()
		record()
		second := time.Now()
		prune(first)
		time.Sleep(10 * compactAfter)
		prune(second)
		if err := db.ask(t.Context(), func(ctx context.Context, f *file) error {
			first, before, err := verifier{f}.beginning(ctx, f.conn)
			if err != nil || first != 7 || before == nil {
				t.Errorf("the log begins with row %d, after %v: %v", first, before, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}
