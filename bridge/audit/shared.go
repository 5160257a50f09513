package audit

import (
	"context"

	"codemode-bridge/bridge/ledger"
)

// Of yields the rows of the configurations that are shown. Several may share a log, and
// give one name to different servers.
func Of(rows Rows, shown func(configuration string) bool) Rows {
	return func(yield func(ledger.Row, error) bool) {
		for row, err := range rows {
			if err == nil && !shown(row.Record.Configuration) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Own is what [Of] shows of one configuration: its rows, and those of old releases, which
// did not record theirs.
func Own(id string) func(configuration string) bool {
	return func(configuration string) bool { return configuration == "" || configuration == id }
}

// Configurations counts the runs that a log has of each configuration that recorded its
// id.
func Configurations(ctx context.Context, log ledger.Reader) (map[string]int, error) {
	runs := map[string]int{}
	for row, err := range log.Rows(ctx, ledger.Query{Events: []ledger.Event{ledger.RunStarted}}) {
		if err != nil {
			return nil, err
		}
		if id := row.Record.Configuration; id != "" {
			runs[id]++
		}
	}
	return runs, nil
}
