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
	"codemode-bridge/bridge/sqlstore"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// resumeRunCommand goes on with a paused run, in this process.
func (a *app) resumeRunCommand() *cobra.Command {
	var media string
	c := &cobra.Command{
		Use: "resume RUN", Short: "Go on with a paused run, and print its result", Args: exactArgs(1), ValidArgsFunction: a.completeRun,
		Long: "Goes on with a run that was paused to wait for a person, or whose bridge has ended, and prints its result\n" +
			"as eval does. Calls that were made are not made again. It approves nothing: while the run waits for\nsomebody, so does this; Ctrl-C pauses the run again.",
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.openRun(c.Context(), args[0])
			if err == nil && media != "" {
				media, err = filepath.Abs(media)
			}
			if err == nil {
				err = a.enterFolder(c.Context(), run)
			}
			if err != nil {
				return err
			}
			var result *mcp.CallToolResult
			err = a.recorded(c.Context(), func(ctx context.Context, p *parts) (err error) {
				a.complain(p)
				waited := a.sayWaiting(ctx, p, run)
				defer waited()
				result, err = p.server.Resume(ctx, run, "the command line", a.sayUnasked())
				return err
			})
			if err != nil {
				return a.noRun(run, err)
			}
			return a.printAnswer(result, media)
		},
	}
	c.Flags().StringVar(&media, "media", "", "write emitted media into a `folder`")
	a.jsonFlag(c)
	return c
}

// sayWaiting says, once, that a run waits for a person and how to answer. The
// function that it returns ends that.
func (a *app) sayWaiting(ctx context.Context, p *parts, run string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			if st, ok := p.server.Run(run); ok && st.State == bridge.RunWaiting {
				fmt.Fprintln(a.err, "waiting for a person: codemode-bridge approvals watch, or the approval page; Ctrl-C pauses the run again")
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

// openRun is the run that an id, or the beginning of one, names, if it has not
// ended: that is found out before servers are started for it.
func (a *app) openRun(ctx context.Context, prefix string) (run string, err error) {
	err = a.withLog(ctx, func(ctx context.Context, s *sqlstore.DB) (err error) {
		if run, err = findRun(ctx, s, prefix); err != nil {
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

// enterFolder goes where the run began, if its servers ran there: from another
// folder, the same command could start another server.
func (a *app) enterFolder(ctx context.Context, run string) error {
	folder := ""
	err := a.withLog(ctx, func(ctx context.Context, s *sqlstore.DB) error {
		_, entries, err := s.Read(ctx, run)
		if err == nil {
			folder, err = bridge.FolderOf(entries)
		}
		if errors.Is(err, ledger.ErrNoJournal) {
			err = nil // whoever resumes it says so
		}
		return err
	})
	if err != nil || folder == "" {
		return err
	}
	if _, given := a.env("CODEMODE_CONFIG"); given || a.configPath != "" {
		if a.configPath, err = a.file(); err != nil {
			return err
		}
	}
	if err := os.Chdir(folder); err != nil {
		return fmt.Errorf("going to the folder where run %s began, and its servers ran: %w", run, err)
	}
	return nil
}

// noRun adds what to do to the error of a run that is not there.
func (a *app) noRun(run string, err error) error {
	elsewhere := (*bridge.ElsewhereError)(nil)
	switch {
	case errors.As(err, &elsewhere) && elsewhere.Configuration.ID != "":
		return &configError{err, "--config names that configuration"}
	case errors.Is(err, bridge.ErrNoRun):
		return fmt.Errorf("there is no run %s that runs or is paused (codemode-bridge runs list shows all)", run)
	case errors.Is(err, context.Canceled), errors.Is(err, errInterrupted):
		fmt.Fprintf(a.err, "the run is paused: codemode-bridge runs resume %s\n", run)
	}
	return err
}

// cancelRunCommand ends a run, wherever it is.
func (a *app) cancelRunCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel RUN", Short: "End a run, running or paused", Args: exactArgs(1), ValidArgsFunction: a.completeRun,
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.openRun(c.Context(), args[0])
			if err != nil {
				return err
			}
			err = a.apart(c.Context(), func(ctx context.Context, p *parts) error {
				return p.server.CancelRun(ctx, run, "the command line")
			})
			if err != nil {
				return a.noRun(run, err)
			}
			fmt.Fprintf(a.err, "run %s ends\n", run)
			return nil
		},
	}
}

// replayRunCommand shows what a run did, step by step.
func (a *app) replayRunCommand() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "replay RUN --dry", Short: "Run a script again against its recorded answers, and show each step", Args: exactArgs(1), ValidArgsFunction: a.completeRun,
		Long: "Runs the script of a run again against the answers that its journal has: nothing is called. Journals of runs\n" +
			"that have ended are kept for as long as runs.keep says; by default, not at all. Results are shown as they were.",
		RunE: func(c *cobra.Command, args []string) error {
			if !dry {
				return &usageError{errors.New("replay only shows what a run did: say --dry; runs resume goes on with a paused one")}
			}
			run := ""
			err := a.withLog(c.Context(), func(ctx context.Context, s *sqlstore.DB) (err error) {
				run, err = findRun(ctx, s, args[0])
				return err
			})
			if err != nil {
				return err
			}
			var steps []bridge.Step
			var result *mcp.CallToolResult
			err = a.apart(c.Context(), func(ctx context.Context, p *parts) (err error) {
				result, err = p.server.Replay(ctx, run, func(st bridge.Step) { steps = append(steps, st) })
				return err
			})
			if err != nil {
				return a.noRun(run, err)
			}
			if a.json {
				answer, ok := result.StructuredContent.(json.RawMessage)
				if !ok {
					return errors.New("the answer holds nothing")
				}
				return a.printJSON(map[string]any{"steps": append([]bridge.Step{}, steps...), "answer": answer})
			}
			for _, st := range steps {
				a.printStep(st)
			}
			return a.printAnswer(result, "")
		},
	}
	c.Flags().BoolVar(&dry, "dry", false, "call nothing (there is no other way)")
	a.jsonFlag(c)
	return c
}

// printStep shows a call of a replayed run, in the order of the answers.
func (a *app) printStep(st bridge.Step) {
	got := audit.Shown(string(st.Value))
	if st.Thrown != "" {
		got = "throws " + canon.Visible(st.Thrown)
	}
	fmt.Fprintf(a.err, "%s  #%d %s(%s)  line %d  %s\n    -> %s\n", st.Time.UTC().Format("15:04:05.000"), st.Call, audit.Shown(st.Name),
		cut(audit.Shown(string(st.Args)), 120), st.Line, st.State, cut(got, 300))
}
