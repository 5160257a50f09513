package audit

import (
	"errors"
	"testing"

	"codemode-bridge/bridge/ledger"
)

// All rows come in their order, with the error that ends them; and nobody reads on once the loop was left.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 1, aheadRows - 1, aheadRows, 3*aheadRows + 7} {
		reads, ended := 0, false
		rows := func(yield func(ledger.Row, error) bool) {
			defer func() { ended = true }()
			for i := range n {
				reads++
				if !yield(ledger.Row{Seq: int64(i + 1)}, nil) {
					return
				}
			}
			yield(ledger.Row{}, broken)
		}
		got, last := 0, error(nil)
		for row, err := range ahead(rows) {
			if last = err; err == nil {
				if got++; row.Seq != int64(got) {
					t.Fatalf("row %d came as the %d.", row.Seq, got)
				}
			}
		}
		if got != n || !errors.Is(last, broken) || !ended {
			t.Errorf("of %d rows %d came, with %v; ended: %v", n, got, last, ended)
		}
		ended = false
		for range ahead(rows) {
			break
		}
		if !ended {
			t.Errorf("of %d rows some are still read", n)
		}
	}
}
