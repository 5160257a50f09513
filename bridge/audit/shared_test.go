package audit_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
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

// What a configuration has are its rows and those of old releases; its runs are counted once each.
func TestConfigurationsOfALog(t *testing.T) {
	s := memstore.New(nil)
	for _, r := range []ledger.Record{
		{Event: ledger.RunStarted, Run: "r1", Configuration: "id mine"},
		{Event: ledger.Intent, Run: "r1", Call: 1, Configuration: "id mine"},
		{Event: ledger.RunStarted, Run: "r2", Configuration: "id mine"},
		{Event: ledger.RunStarted, Run: "r3", Configuration: "file 0123"},
		{Event: ledger.RunStarted, Run: "r4"},
	} {
		if err := s.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := audit.Configurations(t.Context(), s)
	if want := map[string]int{"id mine": 2, "file 0123": 1}; err != nil || !maps.Equal(runs, want) {
		t.Errorf("runs %v, %v, want %v", runs, err, want)
	}
	var own []string
	for row := range audit.Of(s.Rows(t.Context(), ledger.Query{Events: []ledger.Event{ledger.RunStarted}}), audit.Own("id mine")) {
		own = append(own, row.Record.Run)
	}
	if !slices.Equal(own, []string{"r1", "r2", "r4"}) {
		t.Errorf("its own runs are %v", own)
	}
}
