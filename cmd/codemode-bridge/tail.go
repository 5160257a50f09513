package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
)

// tailCommand follows what running bridges do, call by call.
func tailCommand(con *console) *cobra.Command {
	var o struct {
		run   string
		all   bool
		lines int
		once  bool
	}
	c := &cobra.Command{
		Use: "tail", Short: "Follow the calls of the bridges that run", Args: noArgs,
		Long: "Follows the audit log and prints each run and call as it is recorded, by whatever bridge.",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.lines < 0 {
				return &usageError{errors.New("--lines must not be negative")}
			}
			t := &tail{app: con, all: o.all, back: o.lines, once: o.once}
			if o.once {
				return readLog(c.Context(), con, func(ctx context.Context, s ledger.Store) error { return t.follow(ctx, s, o.run) })
			}
			if err := awaitLog(c.Context(), con); err != nil {
				return nil // told to end
			}
			return withLog(c.Context(), con, func(ctx context.Context, s *sqlstore.DB) error { return t.follow(ctx, s, o.run) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "only this `run`; the beginning of its id is enough")
	f.BoolVar(&o.all, "all", false, "every record, not only runs and calls")
	f.IntVarP(&o.lines, "lines", "n", 10, "begin with the last `N` records")
	f.BoolVar(&o.once, "no-follow", false, "print what is there and end")
	completeWith(c, "run", con.completeRun)
	logFlag(con, c)
	con.jsonFlag(c)
	return c
}

// awaitLog waits until there is an audit log, or ctx ends.
func awaitLog(ctx context.Context, con *console) error {
	place, err := storePlace(con)
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		if _, err := os.Stat(place.Path); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !said {
			fmt.Fprintf(con.err, "there is no audit log at %s yet; waiting for one\n", place.Path)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// tail prints rows as they are written.
type tail struct {
	app  *console
	all  bool
	back int // rows to begin with
	once bool
	last int64 // the number of the last row that was looked at
}

// follow prints what is there and, unless once, what is written until ctx
// ends, which is how it is meant to end.
func (t *tail) follow(ctx context.Context, s ledger.Store, run string) error {
	q := ledger.Query{}
	if run != "" {
		found, err := findRun(ctx, s, run)
		if err != nil {
			return err
		}
		q.Runs = []string{found}
	}
	if !t.all {
		q.Events = []ledger.Event{ledger.RunStarted, ledger.RunEnded, ledger.Intent, ledger.Outcome, ledger.Refusal, ledger.Asked, ledger.Verdict}
	}
	if err := t.begin(ctx, s, q); err != nil || t.once {
		return err
	}
	fmt.Fprintln(t.app.err, "following the audit log; Ctrl-C ends it")
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
func (t *tail) begin(ctx context.Context, s ledger.Store, q ledger.Query) (err error) {
	if t.last, _, err = s.Head(ctx); err != nil || t.back == 0 {
		return err
	}
	var rows []ledger.Row
	q.Newest, q.Limit, q.Before = true, t.back, t.last+1
	for row, err := range s.Rows(ctx, q) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	for _, row := range slices.Backward(rows) {
		if err := t.print(row); err != nil {
			return err
		}
	}
	return nil
}

// news prints what was written since.
func (t *tail) news(ctx context.Context, s ledger.Store, q ledger.Query) error {
	q.After = t.last
	for row, err := range s.Rows(ctx, q) {
		if err != nil {
			return err
		}
		t.last = row.Seq
		if err := t.print(row); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) print(row ledger.Row) error {
	if t.app.json {
		return t.app.printJSON(audit.JSON(row))
	}
	_, err := fmt.Fprintf(t.app.out, "%s %s %s\n", row.Record.Time.Local().Format(time.TimeOnly), dash(row.Record.Run), audit.Line(row.Record))
	return err
}
