package auditcmd

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// Replay is the command "profiles replay". With gives do the policy of the configuration,
// and what it may know of calls today.
func (l *Log) Replay(with func(ctx context.Context, do func(audit.ReplayOptions) error) error) *cobra.Command {
	var s Selection
	var from whose
	var by string
	c := &cobra.Command{
		Use: "replay", Short: "Decide the recorded calls anew, and show what the configuration would change", Args: cli.NoArgs,
		Long: "Decides the calls of the audit log anew by the profiles of the configuration, which may be another one than that\n" +
			"which wrote the log (--config), and shows what would be asked, denied or allowed otherwise, by which rule,\n" +
			"with examples and with what people had answered, and how many questions a day there would be. Nothing is changed, and no\n" +
			"server is started: tools are as their servers listed them last.\n" +
			"Where several configurations share the log, the runs of one count: of the one that --runs-of names, else of this one or,\n" +
			"if it has none, as a file to try has not, of the one that holds without --config. With --log, all count.\n" +
			"The log does not have everything: values are hidden or cut in it. A call of which something is missing that\n" +
			"matters is counted as unknown, by cause. The exit code is 0 whatever would change.",
		Example: "  codemode-bridge profiles replay --since 7d --config new.json\n  codemode-bridge profiles replay --config new.json --runs-of shop.json\n  codemode-bridge profiles replay --by strict --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return with(c.Context(), func(o audit.ReplayOptions) error {
				o.By, o.Progress = by, l.progress()
				return l.replay(c.Context(), s, from, o)
			})
		},
	}
	s.Period(c)
	c.Flags().StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	from.flags(c)
	c.Flags().StringVar(&by, "by", "", "decide all calls by this `profile`, whichever their run had")
	l.JSONFlag(c)
	return c
}

func (l *Log) replay(ctx context.Context, s Selection, from whose, o audit.ReplayOptions) error {
	if _, ok := o.Policy.Profile(o.By); o.By != "" && !ok {
		return &cli.UsageError{Err: fmt.Errorf("there is no profile %q in the configuration", o.By)}
	}
	return l.read(ctx, func(ctx context.Context, store ledger.Store) error {
		now := time.Now()
		q, err := s.Query(ctx, store, now)
		if err != nil {
			return err
		}
		if o.Since, o.Until = q.Since, q.Until; o.Until.IsZero() && !o.Since.IsZero() {
			o.Until = now
		}
		counted, err := l.choose(ctx, store, from)
		if err != nil {
			return err
		}
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // most of it is read once: collecting less often makes it a fifth faster
		replayed, err := audit.ReplayLog(audit.Of(store.Rows(ctx, q), counted.shown()), o)
		if err != nil {
			return err
		}
		if l.JSON {
			return l.PrintJSON(struct {
				Configuration string `json:"configuration,omitempty"` // whose runs count; empty: all
				*audit.Replay
			}{counted.id, replayed})
		}
		if counted.says != "" {
			l.Told("%s", counted.says)
		}
		if replayed.Calls == 0 {
			fmt.Fprintln(l.Err, "no recorded calls match")
			return nil
		}
		return replayed.Write(l.Out, l.Table)
	})
}

// progress returns a function that tells every two seconds how many rows were read.
func (l *Log) progress() func(rows int) {
	last := time.Now()
	return func(rows int) {
		if now := time.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			l.Told("%d rows are read", rows)
		}
	}
}
