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

// query prints rows.
func (l *Log) query() *cobra.Command {
	var o struct {
		Selection
		limit          int
		oldest, newest bool
		format         string
	}
	c := &cobra.Command{
		Use: "query", Short: "Print the rows that match", Args: cli.NoArgs,
		Long: "Prints rows of the audit log, the newest first. Flags that are given together must all match;\na flag that is given twice, or with commas, matches any of its values.",
		Example: `  codemode-bridge audit query --decision deny --since 2h
  codemode-bridge audit query --outcome denied --tool 'filesystem__*'
  codemode-bridge audit query --event-type verdict --filter answer='yes, once' --format csv`,
		RunE: func(c *cobra.Command, _ []string) error {
			if l.JSON {
				o.format = "json"
			}
			switch {
			case o.limit < 0:
				return &cli.UsageError{Err: errors.New("--limit must not be negative; 0 is no limit")}
			case o.newest && o.oldest:
				return &cli.UsageError{Err: errors.New("--newest or --oldest, not both")}
			}
			if err := cli.OneOf("format", o.format, "table", "json", "csv"); err != nil {
				return err
			}
			return l.read(c.Context(), func(ctx context.Context, s ledger.Store) error {
				q, err := o.Query(ctx, s, time.Now())
				if err != nil {
					return err
				}
				q.Newest, q.Limit = !o.oldest, o.limit
				return l.printRows(s.Rows(ctx, q), o.format, o.limit)
			})
		},
	}
	o.flags(l, c)
	f := c.Flags()
	f.IntVarP(&o.limit, "limit", "n", 100, "at most so many `rows`; 0 is no limit")
	f.BoolVar(&o.newest, "newest", false, "the newest first (the default)")
	f.BoolVar(&o.oldest, "oldest", false, "the oldest first")
	f.StringVar(&o.format, "format", "table", "table, json or csv")
	cli.Complete(c, "format", []string{"table", "json", "csv"})
	l.JSONFlag(c)
	return c
}

// printRows prints rows in a format, and says so if there may be more than limit.
func (l *Log) printRows(rows audit.Rows, format string, limit int) error {
	n := 0
	counted := func(yield func(ledger.Row, error) bool) {
		for row, err := range rows {
			n++
			if !yield(row, err) {
				return
			}
		}
	}
	var err error
	switch format {
	case "table":
		var table [][]string
		if table, err = audit.Table(counted); err == nil && len(table) > 1 {
			err = l.Table(table)
		}
	case "json":
		all := []audit.Row{}
		for row, broken := range counted {
			if broken != nil {
				return broken
			}
			all = append(all, audit.JSON(row))
		}
		err = l.PrintJSON(all)
	case "csv":
		_, err = audit.Export(l.Out, counted, audit.CSV, l.Version)
	}
	switch {
	case err != nil:
	case n == 0:
		fmt.Fprintln(l.Err, "no rows match")
	case n == limit:
		fmt.Fprintf(l.Err, "these are %s; --limit 0 shows all\n", cli.Count(n, "row"))
	}
	return err
}

// export writes rows for other programs.
func (l *Log) export() *cobra.Command {
	var o struct {
		Selection
		format string
	}
	c := &cobra.Command{
		Use: "export", Short: "Write rows as JSON Lines, CSV or CEF", Args: cli.NoArgs,
		Long: "Writes rows of the audit log to standard output, the oldest first: JSON Lines (jsonl),\nCSV that is safe to open in a spreadsheet, or CEF for log collectors.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.read(c.Context(), func(ctx context.Context, s ledger.Store) error {
				q, err := o.Query(ctx, s, time.Now())
				if err != nil {
					return err
				}
				n, err := audit.Export(l.Out, s.Rows(ctx, q), audit.Format(o.format), l.Version)
				if err == nil {
					fmt.Fprintf(l.Err, "%s\n", cli.Count(n, "row"))
				}
				return err
			})
		},
	}
	o.flags(l, c)
	c.Flags().StringVar(&o.format, "format", string(audit.JSONLines), "jsonl, csv or cef")
	cli.Complete(c, "format", []string{"jsonl", "csv", "cef"})
	c.PreRunE = func(*cobra.Command, []string) error { return cli.OneOf("format", o.format, "jsonl", "csv", "cef") }
	return c
}

// Show prints what one run did.
func (l *Log) Show() *cobra.Command {
	c := &cobra.Command{
		Use: "show run", Short: "Show what one run did: script, preview, every call", Args: cli.OneArg, ValidArgsFunction: l.CompleteRun,
		Long: "Prints one run: its script, the preview beside what happened, and every call with its decision,\nreasons, questions, outcome and sizes. The beginning of a run's id is enough where it is unique.",
		RunE: func(c *cobra.Command, args []string) error {
			return l.With(c.Context(), func(ctx context.Context, s ledger.Book) error {
				run, err := audit.FindRun(ctx, s, args[0])
				if err != nil {
					return err
				}
				t, err := audit.ReadTimeline(s.Rows(ctx, ledger.Query{Runs: []string{run}}))
				if err != nil {
					return err
				}
				if t.Outcome == audit.Open {
					err = l.having(ctx, s, func(state func(string) (string, string)) { _, t.Bridge = state(run) })
				}
				switch {
				case err != nil:
					return err
				case l.JSON:
					return l.PrintJSON(t)
				}
				return t.Write(l.Out)
			})
		},
	}
	l.JSONFlag(c)
	return c
}
