package audit

import "codemode-bridge/bridge/ledger"

// aheadRows is how many rows are read at a time while others are looked at.
const aheadRows = 500

// ahead reads rows in a goroutine of its own, some ahead of who looks at them: reading a
// long log and deciding its calls take about as long. The goroutine has ended when the
// last row was yielded, or the loop over them left.
func ahead(rows Rows) Rows {
	type item struct {
		row ledger.Row
		err error
	}
	return func(yield func(ledger.Row, error) bool) {
		pages, left := make(chan []item, 2), make(chan struct{})
		go func() {
			defer close(pages)
			var page []item
			for row, err := range rows {
				if page = append(page, item{row, err}); len(page) < aheadRows && err == nil {
					continue
				}
				select {
				case pages <- page:
					page = nil
				case <-left:
					return
				}
			}
			select {
			case pages <- page:
			case <-left:
			}
		}()
		defer func() {
			close(left)
			for range pages { // until it has ended
			}
		}()
		for page := range pages {
			for _, one := range page {
				if !yield(one.row, one.err) {
					return
				}
			}
		}
	}
}
