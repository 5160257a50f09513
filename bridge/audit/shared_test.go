package audit_test

import (
	"errors"
	"slices"
	"testing"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
)

// Of a log that configurations share, the rows of one are read, and those that name none; an error is passed on.
func TestRowsOfOneConfiguration(t *testing.T) {
	broken := errors.New("broken")
	all := audit.Rows(func(yield func(ledger.Row, error) bool) {
		for i, configuration := range []string{"mine", "other", "", "mine"} {
			if !yield(ledger.Row{Seq: int64(i + 1), Record: ledger.Record{Configuration: configuration}}, nil) {
				return
			}
		}
		yield(ledger.Row{}, broken)
	})
	var got []int64
	var last error
	for row, err := range audit.Of(all, func(configuration string) bool { return configuration == "" || configuration == "mine" }) {
		got, last = append(got, row.Seq), err
	}
	if !slices.Equal(got, []int64{1, 3, 4, 0}) || !errors.Is(last, broken) {
		t.Errorf("rows %v, then %v", got, last)
	}
	for row := range audit.Of(all, func(configuration string) bool { return configuration == "other" }) {
		if row.Seq != 2 {
			t.Errorf("row %d", row.Seq)
		}
		break
	}
}
