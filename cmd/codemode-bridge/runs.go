package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/evalcmd"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// runsCommand lists and shows the runs in the audit log, and resumes, ends and replays
// them.
func runsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "runs", Short: "Runs of scripts: what they did, and resuming paused ones"}
	log := auditLogOf(con)
	group.AddCommand(logFlag(con, log.Runs()), logFlag(con, log.Show()), resumeRunCommand(con), cancelRunCommand(con), replayRunCommand(con))
	return group
}

// resumeRunCommand resumes a paused run in this process.
func resumeRunCommand(con *console) *cobra.Command {
	var media string
	c := &cobra.Command{
		Use: "resume RUN", Short: "Resume a paused run, and print its result", Args: cli.ExactArgs(1), ValidArgsFunction: auditLogOf(con).CompleteRun,
		Long: "Resumes a run that was paused to wait for a person, or whose bridge has ended, and prints its result\n" +
			"as eval does. Calls that were made are not made again. It approves nothing: while the run waits for\nsomebody, so does this; Ctrl-C pauses the run again.",
		RunE: func(c *cobra.Command, args []string) error {
			run, err := openRun(c.Context(), con, args[0])
			if err == nil && media != "" {
				media, err = filepath.Abs(media)
			}
			if err == nil {
				err = enterFolder(c.Context(), con, run)
			}
			if err != nil {
				return err
			}
			var result *mcp.CallToolResult
			err = onceRecorded(c.Context(), con, func(ctx context.Context, p *parts) (err error) {
				p.start.All() // its script has begun: what it calls next is not known
				waited := sayWaiting(ctx, con, p, run)
				defer waited()
				result, err = p.server.Resume(ctx, run, "the command line", evalcmd.Unasked(&con.Console))
				return err
			})
			if err != nil {
				return noRun(con, run, err)
			}
			return evalcmd.Print(&con.Console, result, media)
		},
	}
	c.Flags().StringVar(&media, "media", "", "write emitted media into a `folder`")
	con.JSONFlag(c)
	return c
}

// sayWaiting watches a run until end is called and, once it waits for a person, says
// so and how to answer.
func sayWaiting(ctx context.Context, con *console, p *parts, run string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			if st, ok := p.server.Run(ctx, run); ok && st.State == lifecycle.RunWaiting {
				fmt.Fprintln(con.Err, "waiting for a person: codemode-bridge approvals watch, or the approval page; Ctrl-C pauses the run again")
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// openRun returns the id of the run that an id, or the beginning of one, names. A run
// that has ended is an error, which is found out before servers are started for it.
func openRun(ctx context.Context, con *console, prefix string) (run string, err error) {
	err = auditLogOf(con).With(ctx, func(ctx context.Context, s ledger.Book) (err error) {
		if run, err = audit.FindRun(ctx, s, prefix); err != nil {
			return err
		}
		for row, err := range s.Rows(ctx, ledger.Query{Runs: []string{run}, Events: []ledger.Event{ledger.RunEnded}, Limit: 1}) {
			if err != nil {
				return err
			}
			return fmt.Errorf("the run %s has ended: %s (codemode-bridge runs show %s says what it did)", run, audit.Shown(row.Record.Outcome), run)
		}
		return nil
	})
	return run, err
}

// enterFolder changes to the folder in which the run began, if its servers ran there:
// in another folder the same command could start another server.
func enterFolder(ctx context.Context, con *console, run string) error {
	folder := ""
	err := auditLogOf(con).With(ctx, func(ctx context.Context, s ledger.Book) error {
		_, entries, err := s.Read(ctx, run)
		if err == nil {
			folder, err = bridge.FolderOf(entries)
		}
		if errors.Is(err, ledger.ErrNoJournal) {
			err = nil // resuming the run reports it
		}
		return err
	})
	if err != nil || folder == "" {
		return err
	}
	if _, given := con.Env("CODEMODE_CONFIG"); given || con.configPath != "" {
		if con.configPath, err = con.file(); err != nil {
			return err
		}
	}
	if err := os.Chdir(folder); err != nil {
		return fmt.Errorf("going to the folder where run %s began, and its servers ran: %w", run, err)
	}
	return nil
}

// noRun adds to an error of resuming a run what the person can do about it.
func noRun(con *console, run string, err error) error {
	elsewhere := (*bridge.ElsewhereError)(nil)
	switch {
	case errors.As(err, &elsewhere) && elsewhere.Configuration.ID != "":
		return &configError{err, "--config names that configuration"}
	case errors.Is(err, bridge.ErrNoRun):
		return fmt.Errorf("there is no run %s that runs or is paused (codemode-bridge runs list shows all)", run)
	case errors.Is(err, context.Canceled), errors.Is(err, errInterrupted):
		fmt.Fprintf(con.Err, "the run is paused: codemode-bridge runs resume %s\n", run)
	}
	return err
}

// cancelRunCommand ends a run, whichever bridge has it.
func cancelRunCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use: "cancel RUN", Short: "End a run, running or paused", Args: cli.ExactArgs(1), ValidArgsFunction: auditLogOf(con).CompleteRun,
		RunE: func(c *cobra.Command, args []string) error {
			run, err := openRun(c.Context(), con, args[0])
			if err != nil {
				return err
			}
			err = onceApart(c.Context(), con, func(ctx context.Context, p *parts) error {
				return p.server.CancelRun(ctx, run, "the command line")
			})
			if err != nil {
				return noRun(con, run, err)
			}
			fmt.Fprintf(con.Err, "run %s ends\n", run)
			return nil
		},
	}
}

// replayRunCommand shows what a run did, step by step.
func replayRunCommand(con *console) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "replay run", Short: "Run a script again against its recorded answers, and show each step", Args: cli.ExactArgs(1), ValidArgsFunction: auditLogOf(con).CompleteRun,
		Long: "Runs the script of a run again against the answers that its journal has: nothing is called. Journals of runs\n" +
			"that have ended are kept for as long as runs.keep says; by default, not at all. Results are shown as they were.",
		RunE: func(c *cobra.Command, args []string) error {
			if !dry {
				return &cli.UsageError{Err: errors.New("replay only shows what a run did; runs resume goes on with a paused one")}
			}
			run := ""
			err := auditLogOf(con).With(c.Context(), func(ctx context.Context, s ledger.Book) (err error) {
				run, err = audit.FindRun(ctx, s, args[0])
				return err
			})
			if err != nil {
				return err
			}
			var steps []replay.Step
			var result *mcp.CallToolResult
			err = onceApart(c.Context(), con, func(ctx context.Context, p *parts) (err error) {
				result, err = p.server.Replay(ctx, run, func(st replay.Step) { steps = append(steps, st) })
				return err
			})
			if err != nil {
				return noRun(con, run, err)
			}
			if con.JSON {
				answer, ok := result.StructuredContent.(json.RawMessage)
				if !ok {
					return errors.New("the answer holds nothing")
				}
				return con.PrintJSON(map[string]any{"steps": append([]replay.Step{}, steps...), "answer": answer})
			}
			for _, st := range steps {
				printStep(con, st)
			}
			return evalcmd.Print(&con.Console, result, "")
		},
	}
	c.Flags().BoolVar(&dry, "dry", true, "call nothing")
	con.OlderFlag(c, "dry", "runs replay")
	con.JSONFlag(c)
	return c
}

// printStep prints one call of a replayed run.
func printStep(con *console, st replay.Step) {
	got := audit.Shown(string(st.Value))
	if st.Thrown != "" {
		got = "throws " + canon.Escape(st.Thrown)
	}
	fmt.Fprintf(con.Err, "%s  #%d %s(%s)  line %d  %s\n    -> %s\n", st.Time.UTC().Format("15:04:05.000"), st.Call, audit.Shown(st.Name),
		canon.Fit(audit.Shown(string(st.Args)), 120), st.Line, st.State, canon.Fit(got, 300))
}
