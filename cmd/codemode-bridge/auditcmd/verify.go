package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// verify checks that the log holds what was written, unchanged and complete.
func (l *Log) verify() *cobra.Command {
	var against string
	c := &cobra.Command{
		Use: "verify", Short: "Check that the log was not edited, cut or reordered", Args: cli.NoArgs,
		Long: "Reads the whole log and says whether it is what was written, or which row was edited, removed,\ninserted or reordered; the exit code is then 5. A log whose end was cut, that was written anew, or\nthat was replaced by an older copy is found with a checkpoint that was kept elsewhere (--against).",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.With(c.Context(), func(ctx context.Context, store ledger.Book) error {
				checkpoints, err := readCheckpoints(against)
				if err != nil {
					return err
				}
				r, err := audit.Verify(ctx, store, checkpoints)
				if err != nil {
					return err
				}
				if l.JSON {
					err = l.PrintJSON(audit.VerifiedJSON(r, len(checkpoints)))
				} else {
					l.printReport(r, len(checkpoints))
				}
				if err == nil && !r.Whole {
					return &cli.ExitError{Code: cli.ExitNotWhole}
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&against, "against", "", "compare with a checkpoint: a `file` of them, or the line itself")
	l.JSONFlag(c)
	return c
}

// readCheckpoints reads a checkpoint that is given as text, or a file with one
// checkpoint a line, the oldest first.
func readCheckpoints(text string) ([]ledger.Checkpoint, error) {
	if text == "" {
		return nil, nil
	}
	if c, err := ledger.ParseCheckpoint(text); err == nil {
		return []ledger.Checkpoint{c}, nil
	}
	file, err := os.Open(text)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("reading checkpoints: --against is no checkpoint, and no file: %w", err)}
	}
	defer file.Close()
	return audit.ReadCheckpoints(text, file)
}

func (l *Log) printReport(r ledger.Report, checkpoints int) {
	if !r.Whole {
		fmt.Fprintf(l.Out, "the log is not what was written: %s\n", audit.Shown(r.Message))
		return
	}
	if r.Rows == 0 {
		fmt.Fprintln(l.Out, "the log is whole, and empty")
	} else {
		fmt.Fprintf(l.Out, "the log is whole: %s, %d to %d, last hash %s\n", cli.Count(int(r.Rows), "row"), r.First, r.Last, r.Hash)
	}
	if !r.Sealed {
		fmt.Fprintln(l.Err, "the log's key was not found, so rows that were written anew with right hashes would pass")
	}
	if checkpoints == 0 {
		fmt.Fprintln(l.Err, "not compared with a checkpoint from elsewhere (--against): an older copy of the whole log would pass")
	} else {
		fmt.Fprintf(l.Err, "compared with %s\n", cli.Count(checkpoints, "checkpoint"))
	}
}

// checkpoint prints a signed checkpoint.
func (l *Log) checkpoint() *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint", Short: "Print a signed line that later proves what the log holds now", Args: cli.NoArgs,
		Long: "Prints one line that names the log's last row and is signed with the log's key. Keep it where the\nlog's owner cannot change it; audit verify --against compares with it.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.With(c.Context(), func(ctx context.Context, store ledger.Book) error {
				point, err := store.Checkpoint(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(l.Out, point)
				return err
			})
		},
	}
}

// prune removes old rows.
func (l *Log) prune() *cobra.Command {
	var age string
	var rows int64
	var dry bool
	c := &cobra.Command{
		Use: "prune --older-than age | --keep-rows n", Short: "Remove old rows; the rest can still be verified", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			byAge, byRows := c.Flags().Changed("older-than"), c.Flags().Changed("keep-rows")
			old, err := audit.Period(age)
			switch {
			case byAge == byRows:
				return &cli.UsageError{Err: errors.New("audit prune takes --older-than or --keep-rows")}
			case byAge && (err != nil || old <= 0):
				return &cli.UsageError{Err: fmt.Errorf("--older-than must be an age such as 90d or 12h, not %q", age)}
			case byRows && rows <= 0:
				return &cli.UsageError{Err: fmt.Errorf("--keep-rows must be 1 or more, not %d", rows)}
			}
			before := time.Now().Add(-old)
			return l.write(c.Context(), func(ctx context.Context, store ledger.Book) error {
				verb := "removed"
				if dry {
					verb = "would remove"
				}
				if byRows {
					if before, err = recorder.TimeOfNewest(ctx, store, rows); err != nil {
						return fmt.Errorf("reading the audit log: %w", err)
					}
				}
				n, err := l.remove(ctx, store, before, dry)
				if err != nil {
					return fmt.Errorf("pruning the audit log: %w", err)
				}
				if l.JSON {
					about := map[string]any{"removed": n, "dry_run": dry}
					if !before.IsZero() {
						about["before"] = before
					}
					return l.PrintJSON(about)
				}
				if before.IsZero() {
					_, err = fmt.Fprintf(l.Out, "%s 0 rows: there are no more than %d\n", verb, rows)
					return err
				}
				_, err = fmt.Fprintf(l.Out, "%s %s from before %s\n", verb, cli.Count(int(n), "row"), before.Local().Format(time.DateTime))
				return err
			})
		},
	}
	c.Flags().StringVar(&age, "older-than", "", "remove rows of this `age` or older: 90d, 12h")
	c.Flags().Int64Var(&rows, "keep-rows", 0, "keep this `many` of the newest rows")
	c.Flags().BoolVar(&dry, "dry-run", false, "only count")
	l.JSONFlag(c)
	return c
}

// remove removes the rows from before a time, or only counts them, and says if some stay.
func (l *Log) remove(ctx context.Context, store ledger.Book, before time.Time, dry bool) (n int64, err error) {
	kept, err := ledger.KeptFrom(ctx, store, before)
	switch {
	case err != nil:
		return 0, err
	case dry:
		n, err = audit.Prunable(ctx, store, kept)
	default:
		n, err = store.Prune(ctx, before)
	}
	if err == nil && kept.Before(before) {
		fmt.Fprintf(l.Err, "hint: rows from %s on stay: not everybody who gets them (audit.push, or a centre) has acknowledged them; codemode-bridge doctor says more\n", kept.Local().Format(time.DateTime))
	}
	return n, err
}

// fingerprint finds a secret that the log hides.
func (l *Log) fingerprint() *cobra.Command {
	c := &cobra.Command{
		Use: "fingerprint", Short: "Find the rows that hide a value you know", Args: cli.NoArgs,
		Long:    "Reads a value from standard input, without showing it, and prints the rows in whose place of a\nhidden value stands the value's fingerprint. The fingerprint is keyed: without the log's key nothing\ncan be learnt from it.",
		Example: `  codemode-bridge audit fingerprint < token.txt`,
		RunE: func(c *cobra.Command, _ []string) error {
			value, err := l.ReadSecret("value: ")
			if err != nil {
				return err
			}
			if value == "" {
				return &cli.UsageError{Err: errors.New("no value: write it to standard input")}
			}
			return l.With(c.Context(), func(ctx context.Context, store ledger.Book) error {
				key, err := store.Key(Fingerprints)
				if err != nil {
					return err
				}
				mark := canon.Fingerprint(key, value)
				var found []audit.Row
				for row, err := range store.Rows(ctx, ledger.Query{}) {
					if err != nil {
						return err
					}
					if audit.Holds(row.Record, mark) {
						found = append(found, audit.JSON(row))
					}
				}
				if l.JSON {
					return l.PrintJSON(map[string]any{"fingerprint": mark, "rows": append([]audit.Row{}, found...)})
				}
				fmt.Fprintf(l.Out, "%s is in %s\n", mark, cli.Count(len(found), "row"))
				for _, row := range found {
					fmt.Fprintf(l.Out, "%d  %s  %s  %s\n", row.Seq, row.Time.Local().Format(time.DateTime), audit.Cell(row.Run), audit.Line(row.Record))
				}
				return nil
			})
		},
	}
	l.JSONFlag(c)
	return c
}

// repair sets a damaged log aside and begins a new one.
func (l *Log) repair() *cobra.Command {
	c := &cobra.Command{
		Use: "repair", Short: "Set a damaged log aside and begin a new one", Args: cli.NoArgs,
		Long: "Renames a damaged log and begins a new one, whose first row names the old file and its last good\nhash. Nothing is deleted, and a log that is whole is left as it is. Bridges that run go on with the new one.",
		RunE: func(c *cobra.Command, _ []string) error {
			place, err := l.Place()
			if err != nil {
				return err
			}
			if l.Missing(place) {
				return fmt.Errorf("there is no audit log at %s", place.Where())
			}
			done, err := l.Repair(c.Context(), place)
			switch {
			case errors.Is(err, sqlstore.ErrWhole):
				fmt.Fprintln(l.Err, "the log is whole: nothing was done")
				return nil
			case err != nil:
				return fmt.Errorf("repairing the audit log: %w", err)
			case l.JSON:
				return l.PrintJSON(done)
			}
			fmt.Fprintf(l.Out, "the damaged log is %s now; its last good row is %d, hash %s\n", done.Old, done.Last, done.Hash)
			fmt.Fprintf(l.Out, "what was wrong: %s\n", audit.Shown(done.Why))
			fmt.Fprintf(l.Out, "a new log begins at %s\n", place.Where())
			return nil
		},
	}
	l.JSONFlag(c)
	return c
}
