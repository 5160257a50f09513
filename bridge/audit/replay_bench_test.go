package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"
)

// BenchmarkReplayLog decides the calls of a log in a file anew, of which half are like
// others: of 50,000 rows, or as many as the variable REPLAY_ROWS says.
//
//	REPLAY_ROWS=1000000 go test -run '^$' -bench ReplayLog -benchtime 1x ./bridge/audit
func BenchmarkReplayLog(b *testing.B) {
	rows := 50_000
	if n, err := strconv.Atoi(os.Getenv("REPLAY_ROWS")); err == nil {
		rows = n
	}
	sets := officePolicies(b)
	book, facts := play(b, sets[1], rand.New(rand.NewPCG(1, 1)), true)
	path := filepath.Join(b.TempDir(), "audit.db")
	fill(b, path, book, rows)
	store, err := sqlstore.Open(b.Context(), sqlstore.Options{Path: path, ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for _, one := range []int{2, 6} { // rules over the run, which nothing is remembered of; and a template with flows
		b.Run(fmt.Sprint("policy", one), func(b *testing.B) {
			for b.Loop() {
				got, err := audit.ReplayLog(store.Rows(b.Context(), ledger.Query{}), audit.ReplayOptions{Policy: sets[one], Facts: facts})
				if err != nil {
					b.Fatal(err)
				}
				if got.Rows < rows {
					b.Fatalf("%d rows", got.Rows)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// fill writes a log of so many rows: the runs of a book again and again, with half of the
// arguments made different.
func fill(b *testing.B, path string, book *logbook, rows int) {
	store, err := sqlstore.Open(b.Context(), sqlstore.Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	var batch []ledger.Record
	for n := 0; n < rows; {
		for _, row := range book.rows {
			r := row.Record
			r.Run, r.Session = fmt.Sprint(r.Run, "-", n/len(book.rows)), fmt.Sprint(r.Session, "-", n/len(book.rows))
			if r.Digest != "" && n%2 == 0 {
				r.Digest += strconv.Itoa(n)
			}
			batch = append(batch, r)
			n++
		}
		if len(batch) > 2000 || n >= rows {
			if err := store.Record(context.Background(), batch...); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}
