package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// Runs is "runs list".
func (l *Log) Runs() *cobra.Command {
	var s Selection
	var limit int
	var others bool
	var principals []string
	c := &cobra.Command{
		Use: "list", Short: "List the runs, the newest first", Args: cli.NoArgs,
		Long: "Lists the runs of this configuration, the newest first. With --all, those of the other configurations\nthat share the audit log as well; only their own bridges go on with them.",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return &cli.UsageError{Err: errors.New("--limit must not be negative; 0 is no limit")}
			}
			for _, one := range principals {
				s.Filters = append(s.Filters, "principal="+one)
			}
			rows, left := []audit.RunRow{}, 0
			err := l.WithAny(c.Context(), func(ctx context.Context, store ledger.Book) error {
				q, err := s.Query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				q.Events, q.Newest = []ledger.Event{ledger.RunStarted}, true
				if rows, left, err = audit.ReadRuns(ctx, store, q, limit, l.shown(others)); err != nil {
					return err
				}
				return l.sayPaused(ctx, store, rows)
			})
			if err != nil {
				return err
			}
			if left > 0 {
				fmt.Fprintf(l.Err, "%s of other configurations left out: --all lists them\n", cli.Count(left, "run"))
			}
			if l.JSON {
				return l.PrintJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(l.Err, "no runs")
				return nil
			}
			return l.Table(audit.RunTable(rows, others))
		},
	}
	s.Period(c)
	c.Flags().StringSliceVar(&s.Clients, "client", nil, "only clients of this `name`")
	c.Flags().StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	c.Flags().StringSliceVar(&principals, "principal", nil, "only runs of this `principal`, as the column WHO shows it")
	c.Flags().BoolVar(&others, "all", false, "also the runs of other configurations")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "at most this many `runs`; 0 means no limit")
	l.JSONFlag(c)
	return c
}

// shown returns a function that reports whether a list shows the runs of a configuration:
// this one's, and those of old releases, which did not record theirs; all of them, with
// others or if there is no configuration here.
func (l *Log) shown(others bool) func(configuration string) bool {
	if !l.Named() && !others {
		if cfg, err := l.Load(); err == nil {
			own, _ := cfg.Identity()
			return audit.Own(own)
		}
	}
	return func(string) bool { return true }
}

// sayPaused puts into rows which of the open runs are paused, which were interrupted by
// the end of their bridge, and which bridge has the others.
func (l *Log) sayPaused(ctx context.Context, store ledger.Book, rows []audit.RunRow) error {
	return l.having(ctx, store, func(state func(run string) (is, bridge string)) {
		for i := range rows {
			if rows[i].State != audit.Open {
				continue
			}
			is, bridge := state(rows[i].Run)
			if rows[i].Bridge = bridge; is != "" {
				rows[i].State = is
			}
		}
	})
}

// having gives do the states of runs that have not ended, where it is known: that a run is
// paused or was interrupted, or which bridge has it.
func (l *Log) having(ctx context.Context, store ledger.Book, do func(state func(run string) (is, bridge string))) error {
	place, err := l.Place()
	if err != nil {
		return err
	}
	kept, err := store.Runs(ctx)
	if err != nil {
		return fmt.Errorf("looking for paused runs: %w", err)
	}
	return l.Others(place, func(gone func(string) bool) error {
		do(func(run string) (is, bridge string) {
			for _, k := range kept {
				switch {
				case k.Run != run:
				case k.State == ledger.Paused:
					return lifecycle.RunPaused, ""
				case k.State == ledger.Live && gone(k.Owner):
					return lifecycle.RunInterrupted, ""
				case k.State == ledger.Live && !place.Store.IsZero():
					return "", k.Owner
				}
			}
			return "", ""
		})
		return nil
	})
}
