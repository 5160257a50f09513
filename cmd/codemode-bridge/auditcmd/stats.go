package auditcmd

import (
	"context"
	"fmt"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// stats prints statistics, and suggests rules.
func (l *Log) stats() *cobra.Command {
	var s Selection
	c := &cobra.Command{
		Use: "stats", Short: "Count questions, answers, refusals, and suggest rules", Args: cli.NoArgs,
		Long: "Counts what was asked and how it was answered, what was refused and why, and which rules nothing\nneeded. For a rule that is nearly always answered yes, it prints the narrowest rule that would have\ncovered those answers, with every no that it would have let through. Nothing is changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.read(c.Context(), func(ctx context.Context, store ledger.Store) error {
				q, err := s.Query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				stats, err := audit.Measure(store.Rows(ctx, q))
				if err != nil {
					return err
				}
				unused, err := l.unused(stats)
				if err != nil {
					fmt.Fprintf(l.Err, "rules that nothing needed are not listed: the configuration cannot be read: %s\n", cli.FirstLine(err.Error()))
				}
				if l.JSON {
					return l.PrintJSON(struct {
						*audit.Stats
						Unused      []string           `json:"unused"`
						Suggestions []audit.Suggestion `json:"suggestions"`
					}{stats, unused, stats.Suggest()})
				}
				if stats.Rows == 0 {
					fmt.Fprintln(l.Err, "no rows match")
					return nil
				}
				return stats.Write(l.Out, unused, l.Table)
			})
		},
	}
	s.Period(c)
	c.Flags().StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	l.JSONFlag(c)
	return c
}

// unused returns the rules of the present configuration that the log never names.
func (l *Log) unused(stats *audit.Stats) ([]string, error) {
	cfg, err := l.Load()
	if err != nil {
		return nil, err
	}
	return stats.Unused(cfg.Evaluation.Spec), nil
}

// report writes the report for an auditor.
func (l *Log) report() *cobra.Command {
	var s Selection
	var against string
	c := &cobra.Command{
		Use: "report", Short: "Write a report of a period, for an auditor, as Markdown", Args: cli.NoArgs,
		Long: "Verifies the whole log and writes, as Markdown, who let what happen in a period, what was refused\nand why, which outcomes are not known, and how the configuration changed. Where the log is not whole\nthe report says so and the exit code is 5.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.With(c.Context(), func(ctx context.Context, store *sqlstore.DB) error {
				now := time.Now()
				q, err := s.Query(ctx, store, now)
				if err != nil {
					return err
				}
				checkpoints, err := readCheckpoints(against)
				if err != nil {
					return err
				}
				verified, err := audit.Verify(ctx, store, checkpoints)
				if err != nil {
					return err
				}
				err = audit.WriteReport(l.Out, store.Rows(ctx, q), audit.ReportOptions{
					From: q.Since, Until: q.Until, Now: now, Verified: verified, Against: len(checkpoints) > 0,
				})
				if err == nil && !verified.Whole {
					return &cli.ExitError{Code: cli.ExitNotWhole}
				}
				return err
			})
		},
	}
	s.Period(c)
	c.Flags().StringVar(&against, "against", "", "verify also against a checkpoint: a `file`, or the line itself")
	return c
}
