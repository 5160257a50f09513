package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Tail prints rows as they are written.
type Tail struct {
	Run   string // print only this run, by the beginning of its id; empty for all
	All   bool   // print every record, not only those of runs and calls
	Back  int    // how many rows to begin with
	Once  bool   // print what is there and end
	Print func(ledger.Row) error
	// Following is called before it waits for more.
	Following func()

	last int64 // the number of the last row that was looked at
}

// Follow prints what is there and, unless Once, what is written until ctx ends. That
// ctx ended is not an error.
func (t *Tail) Follow(ctx context.Context, s ledger.Store) error {
	q := ledger.Query{}
	if t.Run != "" {
		found, err := FindRun(ctx, s, t.Run)
		if err != nil {
			return err
		}
		q.Runs = []string{found}
	}
	if !t.All {
		q.Events = []ledger.Event{ledger.RunStarted, ledger.RunEnded, ledger.Intent, ledger.Outcome, ledger.Refusal, ledger.Asked, ledger.Verdict}
	}
	if err := t.begin(ctx, s, q); err != nil || t.Once {
		return err
	}
	t.Following()
	for {
		changed := s.Changed()
		if err := t.news(ctx, s, q); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// begin prints the last rows.
func (t *Tail) begin(ctx context.Context, s ledger.Store, q ledger.Query) (err error) {
	if t.last, _, err = s.Head(ctx); err != nil || t.Back == 0 {
		return err
	}
	var rows []ledger.Row
	q.Newest, q.Limit, q.Before = true, t.Back, t.last+1
	for row, err := range s.Rows(ctx, q) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	for _, row := range slices.Backward(rows) {
		if err := t.Print(row); err != nil {
			return err
		}
	}
	return nil
}

// news prints what was written since.
func (t *Tail) news(ctx context.Context, s ledger.Store, q ledger.Query) error {
	q.After = t.last
	for row, err := range s.Rows(ctx, q) {
		if err != nil {
			return err
		}
		t.last = row.Seq
		if err := t.Print(row); err != nil {
			return err
		}
	}
	return nil
}

// TailLine is a row as tail prints it.
func TailLine(row ledger.Row) string {
	return fmt.Sprintf("%s %s %s", row.Record.Time.Local().Format(time.TimeOnly), Cell(row.Record.Run), Line(row.Record))
}
