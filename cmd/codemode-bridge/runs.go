package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/cmd/codemode-bridge/auditcmd"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// runsCommand lists and shows the runs in the audit log, and resumes, ends and replays
// them.
func runsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "runs", Short: "Runs of scripts: what they did, and resuming paused ones"}
	list, show := listRunsCommand(con), auditLogOf(con).Show()
	group.AddCommand(logFlag(con, list), logFlag(con, show), resumeRunCommand(con), cancelRunCommand(con), replayRunCommand(con))
	return group
}

func listRunsCommand(con *console) *cobra.Command {
	var s auditcmd.Selection
	var limit int
	var others bool
	c := &cobra.Command{
		Use: "list", Short: "List the runs, the newest first", Args: cli.NoArgs,
		Long: "Lists the runs of this configuration, the newest first. With --all, those of the other configurations\nthat share the audit log as well; only their own bridges go on with them.",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return &cli.UsageError{Err: errors.New("--limit must not be negative; 0 is no limit")}
			}
			rows, left := []audit.RunRow{}, 0
			err := auditLogOf(con).WithAny(c.Context(), func(ctx context.Context, store ledger.Book) error {
				q, err := s.Query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				q.Events, q.Newest = []ledger.Event{ledger.RunStarted}, true
				if rows, left, err = audit.ReadRuns(ctx, store, q, limit, shownRuns(con, others)); err != nil {
					return err
				}
				return sayPaused(ctx, con, store, rows)
			})
			if err != nil {
				return err
			}
			if left > 0 {
				fmt.Fprintf(con.Err, "%s of other configurations left out: --all lists them\n", cli.Count(left, "run"))
			}
			if con.JSON {
				return con.PrintJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(con.Err, "no runs")
				return nil
			}
			return con.Table(audit.RunTable(rows, others))
		},
	}
	s.Period(c)
	c.Flags().StringSliceVar(&s.Clients, "client", nil, "only clients of this `name`")
	c.Flags().StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	c.Flags().BoolVar(&others, "all", false, "also the runs of other configurations")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "at most this many `runs`; 0 means no limit")
	con.JSONFlag(c)
	return c
}

// shownRuns returns a function that reports whether a list shows the runs of a
// configuration: this one's, and those of old releases, which did not record theirs;
// all of them, with others or if there is no configuration here.
func shownRuns(con *console, others bool) func(configuration string) bool {
	if con.logFile == "" && !others {
		if cfg, err := con.load(); err == nil {
			own, _ := cfg.Identity()
			return func(configuration string) bool { return configuration == "" || configuration == own }
		}
	}
	return func(string) bool { return true }
}

// sayPaused puts into rows which of the open runs are paused, and which were
// interrupted by the end of their bridge.
func sayPaused(ctx context.Context, con *console, store ledger.Book, rows []audit.RunRow) error {
	place, err := storePlace(con)
	if err != nil {
		return err
	}
	kept, err := store.Runs(ctx)
	if err != nil {
		return fmt.Errorf("looking for paused runs: %w", err)
	}
	states := make(map[string]string)
	for _, k := range kept {
		switch {
		case k.State == ledger.Paused:
			states[k.Run] = lifecycle.RunPaused
		case k.State == ledger.Live && alive.Gone(bridgesOf(place), k.Owner):
			states[k.Run] = lifecycle.RunInterrupted
		}
	}
	for i := range rows {
		if state, ok := states[rows[i].Run]; ok && rows[i].State == audit.Open {
			rows[i].State = state
		}
	}
	return nil
}
