package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// auditCommand reads, checks and keeps the audit log.
func auditCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "audit", Short: "What was asked, decided and done, and the proof of it"}
	group.AddCommand(queryCommand(con), showCommand(con, "Show what one run did: script, preview, every call"), statsCommand(con), exportCommand(con),
		reportCommand(con), verifyCommand(con), checkpointCommand(con), pruneCommand(con), repairCommand(con), fingerprintCommand(con))
	logFlag(con, group)
	return group
}

// logFlag gives a command, and those below it, the flag --log.
func logFlag(con *console, c *cobra.Command) {
	c.PersistentFlags().StringVar(&con.logFile, "log", "", "the audit log's `file` (default: audit.path of the configuration)")
}

// errNoLog ends a command that needs an audit log where there is none; it has
// been said.
var errNoLog = &cli.ExitError{Code: cli.ExitFailed}

// withLog opens the audit log to read, if there is one, and does one thing with
// it. Where there is none it says so; the error is then errNoLog.
func withLog(ctx context.Context, con *console, do func(context.Context, *sqlstore.DB) error) error {
	return withStore(ctx, con, true, do)
}

// readLog is withLog for commands to which no log is an empty one: they say
// what they would say of that.
func readLog(ctx context.Context, con *console, do func(context.Context, ledger.Store) error) error {
	err := withLog(ctx, con, func(ctx context.Context, s *sqlstore.DB) error { return do(ctx, s) })
	if errors.Is(err, errNoLog) {
		return do(ctx, memstore.New(nil))
	}
	return err
}

// writeLog is withLog for commands that change the log; where there is none
// they have nothing to do.
func writeLog(ctx context.Context, con *console, do func(context.Context, *sqlstore.DB) error) error {
	return noLogIsEmpty(withStore(ctx, con, false, do))
}

func noLogIsEmpty(err error) error {
	if errors.Is(err, errNoLog) {
		return nil
	}
	return err
}

func withStore(ctx context.Context, con *console, readOnly bool, do func(context.Context, *sqlstore.DB) error) (err error) {
	place, err := storePlace(con)
	if err != nil {
		return err
	}
	if _, err := os.Stat(place.Path); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(con.Err, "there is no audit log at %s\n", place.Path)
		return errNoLog
	}
	store, err := openStore(ctx, place, readOnly, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if broken := store.Err(); errors.Is(broken, ledger.ErrDamaged) {
		fmt.Fprintf(con.Err, "%s\n%s\n", audit.Shown(broken.Error()), repairHint)
	}
	return do(ctx, store)
}

// queryCommand prints rows.
func queryCommand(con *console) *cobra.Command {
	var o struct {
		selection
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
			if con.JSON {
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
			return readLog(c.Context(), con, func(ctx context.Context, s ledger.Store) error {
				q, err := o.Query(ctx, s, time.Now())
				if err != nil {
					return err
				}
				q.Newest, q.Limit = !o.oldest, o.limit
				return printRows(con, s.Rows(ctx, q), o.format, o.limit)
			})
		},
	}
	o.flags(con, c)
	f := c.Flags()
	f.IntVarP(&o.limit, "limit", "n", 100, "at most so many `rows`; 0 is no limit")
	f.BoolVar(&o.newest, "newest", false, "the newest first (the default)")
	f.BoolVar(&o.oldest, "oldest", false, "the oldest first")
	f.StringVar(&o.format, "format", "table", "table, json or csv")
	cli.Complete(c, "format", []string{"table", "json", "csv"})
	con.JSONFlag(c)
	return c
}

// printRows prints rows in a format and says when there may be more.
func printRows(con *console, rows audit.Rows, format string, limit int) error {
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
			err = con.Table(table)
		}
	case "json":
		all := []audit.Row{}
		for row, broken := range counted {
			if broken != nil {
				return broken
			}
			all = append(all, audit.JSON(row))
		}
		err = con.PrintJSON(all)
	case "csv":
		_, err = audit.Export(con.Out, counted, audit.CSV, version)
	}
	switch {
	case err != nil:
	case n == 0:
		fmt.Fprintln(con.Err, "no rows match")
	case n == limit:
		fmt.Fprintf(con.Err, "these are %s; --limit 0 shows all\n", cli.Count(n, "row"))
	}
	return err
}

// exportCommand writes rows for other programs.
func exportCommand(con *console) *cobra.Command {
	var o struct {
		selection
		format string
	}
	c := &cobra.Command{
		Use: "export", Short: "Write rows as JSON Lines, CSV or CEF", Args: cli.NoArgs,
		Long: "Writes rows of the audit log to standard output, the oldest first: JSON Lines (jsonl),\nCSV that is safe to open in a spreadsheet, or CEF for log collectors.",
		RunE: func(c *cobra.Command, _ []string) error {
			return readLog(c.Context(), con, func(ctx context.Context, s ledger.Store) error {
				q, err := o.Query(ctx, s, time.Now())
				if err != nil {
					return err
				}
				n, err := audit.Export(con.Out, s.Rows(ctx, q), audit.Format(o.format), version)
				if err == nil {
					fmt.Fprintf(con.Err, "%s\n", cli.Count(n, "row"))
				}
				return err
			})
		},
	}
	o.flags(con, c)
	c.Flags().StringVar(&o.format, "format", string(audit.JSONLines), "jsonl, csv or cef")
	cli.Complete(c, "format", []string{"jsonl", "csv", "cef"})
	c.PreRunE = func(*cobra.Command, []string) error { return cli.OneOf("format", o.format, "jsonl", "csv", "cef") }
	return c
}

// showCommand prints what one run did.
func showCommand(con *console, short string) *cobra.Command {
	c := &cobra.Command{
		Use: "show run", Short: short, Args: cli.OneArg, ValidArgsFunction: con.completeRun,
		Long: "Prints one run: its script, the preview beside what happened, and every call with its decision,\nreasons, questions, outcome and sizes. The beginning of a run's id is enough where it is unique.",
		RunE: func(c *cobra.Command, args []string) error {
			return withLog(c.Context(), con, func(ctx context.Context, s *sqlstore.DB) error {
				run, err := audit.FindRun(ctx, s, args[0])
				if err != nil {
					return err
				}
				t, err := audit.ReadTimeline(s.Rows(ctx, ledger.Query{Runs: []string{run}}))
				if err != nil {
					return err
				}
				if con.JSON {
					return con.PrintJSON(t)
				}
				return t.Write(con.Out)
			})
		},
	}
	con.JSONFlag(c)
	return c
}
