package auditcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Selection holds the flags that select rows.
type Selection struct{ audit.Selection }

// flags adds all of its flags to a command.
func (s *Selection) flags(l *Log, c *cobra.Command) {
	f := c.Flags()
	s.Period(c)
	f.StringSliceVar(&s.Events, "event-type", nil, "only these `events`: "+strings.Join(audit.EventWords, ", "))
	f.StringSliceVar(&s.Decisions, "decision", nil, "only what policy `decided`: allow, ask, deny; or denied: everything that was refused, whoever said no")
	f.StringSliceVar(&s.Outcomes, "outcome", nil, "only calls that `ended` this way: "+strings.Join(audit.OutcomeWords, ", ")+"; denied is another word for refused")
	f.StringSliceVar(&s.Risks, "risk", nil, "only calls of this `risk`: low, medium, high, critical")
	f.StringVar(&s.Tool, "tool", "", "only tools that a `pattern` over server__tool matches; * stands for anything")
	f.StringSliceVar(&s.Servers, "server", nil, "only calls of this `server`")
	f.StringSliceVar(&s.Runs, "run", nil, "only this `run`; the beginning of its id is enough")
	f.StringSliceVar(&s.Sessions, "session", nil, "only this `session`")
	f.StringSliceVar(&s.Clients, "client", nil, "only clients of this `name`")
	f.StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	f.StringSliceVar(&s.Approvers, "approver", nil, "only what this `person` answered")
	f.StringSliceVar(&s.Channels, "channel", nil, "only what was answered this `way`: elicitation, grant, fallback, timeout and so on")
	f.StringArrayVar(&s.Filters, "filter", nil, "only rows with this text in a field of their JSON, as `field=text`; args.path looks into the arguments")
	cli.Complete(c, "event-type", audit.EventWords)
	cli.Complete(c, "decision", audit.DecisionWords)
	cli.Complete(c, "outcome", audit.OutcomeWords)
	cli.Complete(c, "risk", audit.RiskWords)
	cli.CompleteWith(c, "run", l.CompleteRun)
}

// Period adds only the flags that select a period.
func (s *Selection) Period(c *cobra.Command) {
	c.Flags().StringVar(&s.Since, "since", "", "not before this `time`: 2h, 7d, 2026-01-31, 2026-01-31T15:04")
	c.Flags().StringVar(&s.Until, "until", "", "before this `time`, written like --since")
}

// CompleteRun offers the newest runs to the shell.
func (l *Log) CompleteRun(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	said := l.Err
	l.Err = io.Discard
	defer func() { l.Err = said }()
	var all []string
	if err := l.With(c.Context(), func(ctx context.Context, s ledger.Book) error {
		for row, err := range s.Rows(ctx, ledger.Query{Events: []ledger.Event{ledger.RunStarted}, Newest: true, Limit: 200}) {
			if err != nil {
				return err
			}
			if r := row.Record; strings.HasPrefix(r.Run, prefix) && len(all) < 30 {
				all = append(all, fmt.Sprintf("%s\t%s %s", r.Run, r.Time.Local().Format(time.DateTime), audit.Cell(r.Client)))
			}
		}
		return nil
	}); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
