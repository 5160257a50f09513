package audit

import "codemode-bridge/bridge/ledger"

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
