package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// Tail follows what running bridges do, call by call.
func (l *Log) Tail() *cobra.Command {
	var o struct {
		run   string
		all   bool
		lines int
		once  bool
	}
	c := &cobra.Command{
		Use: "tail", Short: "Follow the calls of running bridges", Args: cli.NoArgs,
		Long: "Follows the audit log and prints each run and call as it is recorded, by whatever bridge.",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.lines < 0 {
				return &cli.UsageError{Err: errors.New("--lines must not be negative")}
			}
			t := &audit.Tail{
				Run: o.run, All: o.all, Back: o.lines, Once: o.once,
				Following: func() { fmt.Fprintln(l.Err, "following the audit log; Ctrl-C ends it") },
				Print: func(row ledger.Row) error {
					if l.JSON {
						return l.PrintJSON(audit.JSON(row))
					}
					_, err := fmt.Fprintln(l.Out, audit.TailLine(row))
					return err
				},
			}
			if o.once {
				return l.read(c.Context(), func(ctx context.Context, s ledger.Store) error { return t.Follow(ctx, s) })
			}
			if err := l.await(c.Context()); err != nil {
				return nil // interrupted while waiting
			}
			return l.With(c.Context(), func(ctx context.Context, s ledger.Book) error { return t.Follow(ctx, s) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "only this `run`; the beginning of its id is enough")
	f.BoolVar(&o.all, "all", false, "print every record, not only runs and calls")
	f.IntVarP(&o.lines, "lines", "n", 10, "begin with the last `N` records")
	f.BoolVar(&o.once, "no-follow", false, "print what is there and end")
	cli.CompleteWith(c, "run", l.CompleteRun)
	l.JSONFlag(c)
	return c
}

// await waits until there is an audit log, or ctx ends.
func (l *Log) await(ctx context.Context) error {
	place, err := l.Place()
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		if !l.Missing(place) {
			return nil
		}
		if !said {
			fmt.Fprintf(l.Err, "there is no audit log at %s yet; waiting for one\n", place.Where())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
