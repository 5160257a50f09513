package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
)

// runsCommand shows runs, from the audit log, and goes on with paused ones.
func runsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "runs", Short: "The runs of scripts: what they did, and going on with paused ones"}
	list, show := listRunsCommand(con), showCommand(con, "Show what one run did")
	logFlag(con, list)
	logFlag(con, show)
	group.AddCommand(list, show, resumeRunCommand(con), cancelRunCommand(con), replayRunCommand(con))
	return group
}

// A runRow is a run as runs list prints it.
type runRow struct {
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Client  string    `json:"client,omitempty"`
	Profile string    `json:"profile,omitempty"`
	// Configuration is the id of the one that the run belongs to; empty for a run
	// of a release that kept none.
	Configuration string        `json:"configuration,omitempty"`
	State         string        `json:"state"` // an outcome, or open, paused or interrupted
	Duration      time.Duration `json:"duration_ns,omitempty"`
	Calls         int           `json:"calls"`
	Refused       int           `json:"refused,omitempty"`
	Error         string        `json:"error,omitempty"`
}

func listRunsCommand(con *console) *cobra.Command {
	var s selection
	var limit int
	var others bool
	c := &cobra.Command{
		Use: "list", Short: "List the runs, the newest first", Args: noArgs,
		Long: "Lists the runs of this configuration, the newest first. With --all, those of the other configurations\nthat share the audit log as well; only their own bridges go on with them.",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative; 0 is no limit")}
			}
			rows, left := []runRow{}, 0
			err := noLogIsEmpty(withLog(c.Context(), con, func(ctx context.Context, store *sqlstore.DB) error {
				q, err := s.query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				q.Events, q.Newest = []ledger.Event{ledger.RunStarted}, true
				if rows, left, err = readRuns(ctx, store, q, limit, shownRuns(con, others)); err != nil {
					return err
				}
				return sayPaused(ctx, con, store, rows)
			}))
			if err != nil {
				return err
			}
			if left > 0 {
				fmt.Fprintf(con.err, "%s of other configurations left out: --all lists them\n", count(left, "run"))
			}
			if con.json {
				return con.printJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(con.err, "no runs")
				return nil
			}
			head := []string{"run", "started", "client", "profile", "state", "took", "calls", "why"}
			if others {
				head = append(head, "configuration")
			}
			table := [][]string{head}
			for _, r := range rows {
				calls, took := fmt.Sprint(r.Calls), "-"
				if r.Refused > 0 {
					calls += fmt.Sprintf(" (%d refused)", r.Refused)
				}
				if r.Duration > 0 {
					took = r.Duration.Round(time.Millisecond).String()
				}
				line := []string{dash(r.Run), r.Started.Local().Format("2006-01-02 15:04:05"), dash(r.Client), dash(r.Profile),
					dash(r.State), took, calls, cut(audit.Shown(firstLine(r.Error)), 100)}
				if others {
					line = append(line, dash(r.Configuration))
				}
				table = append(table, line)
			}
			return con.table(table)
		},
	}
	s.period(c)
	c.Flags().StringSliceVar(&s.clients, "client", nil, "only clients of this `name`")
	c.Flags().StringSliceVar(&s.profiles, "profile", nil, "only runs under this `profile`")
	c.Flags().BoolVar(&others, "all", false, "also the runs of other configurations")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "at most so many `runs`; 0 is no limit")
	con.jsonFlag(c)
	return c
}

// shownRuns reports whether a run of a configuration is shown: those of this one,
// and those of releases that kept none; all, where there is no configuration to
// go by.
func shownRuns(con *console, others bool) func(configuration string) bool {
	if con.logFile == "" && !others {
		if cfg, err := con.load(); err == nil {
			own, _ := cfg.Identity()
			return func(configuration string) bool { return configuration == "" || configuration == own }
		}
	}
	return func(string) bool { return true }
}

// sayPaused finds out which of the open runs wait for somebody to resume them.
func sayPaused(ctx context.Context, con *console, store *sqlstore.DB, rows []runRow) error {
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
			states[k.Run] = bridge.RunPaused
		case k.State == ledger.Live && alive.Gone(bridgesOf(place), k.Owner):
			states[k.Run] = bridge.RunInterrupted
		}
	}
	for i := range rows {
		if state, ok := states[rows[i].Run]; ok && rows[i].State == audit.Open {
			rows[i].State = state
		}
	}
	return nil
}

// readRuns puts together the runs whose beginnings q selects and that are shown,
// at most so many; 0 is no limit. It counts those that were left out before that.
func readRuns(ctx context.Context, store ledger.Store, q ledger.Query, limit int, shown func(configuration string) bool) (rows []runRow, left int, err error) {
	rows = []runRow{}
	for row, err := range store.Rows(ctx, q) {
		if err != nil {
			return nil, 0, err
		}
		r := row.Record
		if !shown(r.Configuration) {
			left++
			continue
		}
		rows = append(rows, runRow{Run: r.Run, Started: r.Time, Client: r.Client, Profile: r.Profile, Configuration: r.Configuration, State: audit.Open})
		if len(rows) == limit {
			break
		}
	}
	for i := range rows {
		run := &rows[i]
		sent := map[int]bool{} // by call: a list of all servers has an intent for each
		events := []ledger.Event{ledger.Intent, ledger.Refusal, ledger.RunEnded}
		for row, err := range store.Rows(ctx, ledger.Query{Runs: []string{run.Run}, Events: events}) {
			if err != nil {
				return nil, 0, err
			}
			switch r := row.Record; r.Event {
			case ledger.Intent:
				if !sent[r.Call] {
					sent[r.Call] = true
					run.Calls++
				}
			case ledger.Refusal:
				if !sent[r.Call] { // else it is of one server's part
					run.Calls++
					run.Refused++
				}
			case ledger.RunEnded:
				run.State, run.Duration, run.Error = r.Outcome, r.Duration, r.Error
			}
		}
	}
	return rows, left, nil
}
