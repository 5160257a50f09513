package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
)

// A selection is what the flags of a command say of the rows it wants.
type selection struct {
	events, decisions, outcomes, risks                              []string
	servers, runs, sessions, clients, profiles, approvers, channels []string
	tool, since, until                                              string
	filters                                                         []string
}

// The words of flags that take one of a few.
var (
	eventWords = []string{
		string(ledger.RunStarted), string(ledger.RunEnded), string(ledger.RunPaused), string(ledger.RunResumed), string(ledger.Preview), string(ledger.Intent), string(ledger.Outcome),
		string(ledger.Refusal), string(ledger.SavedScript), string(ledger.Asked), string(ledger.Answered), string(ledger.Verdict), string(ledger.Granted), string(ledger.Revoked),
		string(ledger.ServerAsked),
		string(ledger.ConfigChanged), string(ledger.BridgeStarted), string(ledger.BridgeEnded), string(ledger.SignedIn), string(ledger.StopAsked),
		string(ledger.ToolChanged), string(ledger.ToolAccepted), string(ledger.ToolBlocked),
		string(ledger.Pruned), string(ledger.Repaired),
	}
	decisionWords = []string{"allow", "ask", "deny"}
	outcomeWords  = []string{ledger.Done, ledger.Failed, ledger.Refused, ledger.Unknown, ledger.Stopped, ledger.Held}
	riskWords     = []string{"low", "medium", "high", "critical"}
)

// flags adds the flags to a command.
func (s *selection) flags(a *console, c *cobra.Command) {
	f := c.Flags()
	s.period(c)
	f.StringSliceVar(&s.events, "event-type", nil, "only these `events`: "+strings.Join(eventWords, ", "))
	f.StringSliceVar(&s.decisions, "decision", nil, "only what policy `decided` so: allow, ask, deny; denied alone is what was refused, whoever said no")
	f.StringSliceVar(&s.outcomes, "outcome", nil, "only what `ended` so: done, failed, refused (or denied), unknown, stopped")
	f.StringSliceVar(&s.risks, "risk", nil, "only calls of this `risk`: low, medium, high, critical")
	f.StringVar(&s.tool, "tool", "", "only tools that a `pattern` over server__tool matches; * stands for anything")
	f.StringSliceVar(&s.servers, "server", nil, "only calls of this `server`")
	f.StringSliceVar(&s.runs, "run", nil, "only this `run`; the beginning of its id is enough")
	f.StringSliceVar(&s.sessions, "session", nil, "only this `session`")
	f.StringSliceVar(&s.clients, "client", nil, "only clients of this `name`")
	f.StringSliceVar(&s.profiles, "profile", nil, "only runs under this `profile`")
	f.StringSliceVar(&s.approvers, "approver", nil, "only what this `person` answered")
	f.StringSliceVar(&s.channels, "channel", nil, "only what was answered in this `way`, such as elicitation, grant, fallback, timeout")
	f.StringArrayVar(&s.filters, "filter", nil, "only rows with this text in a field of their JSON, as `field=text`; args.path looks into the arguments")
	complete(c, "event-type", eventWords)
	complete(c, "decision", decisionWords)
	complete(c, "outcome", outcomeWords)
	complete(c, "risk", riskWords)
	completeWith(c, "run", a.completeRun)
}

// period adds the flags of a period alone.
func (s *selection) period(c *cobra.Command) {
	c.Flags().StringVar(&s.since, "since", "", "not before this `time`: 2h, 7d, 2026-01-31, 2026-01-31T15:04")
	c.Flags().StringVar(&s.until, "until", "", "before this `time`, written like --since")
}

// query is what the flags ask of a store.
func (s *selection) query(ctx context.Context, store ledger.Store, now time.Time) (q ledger.Query, err error) {
	denied := len(s.decisions) == 1 && s.decisions[0] == "denied"
	if denied { // by policy, a person or nobody: not only where policy denies
		s.decisions = nil
	}
	for _, list := range []struct {
		flag    string
		given   []string
		allowed []string
	}{{"event-type", s.events, eventWords}, {"decision", s.decisions, decisionWords}, {"outcome", s.outcomes, outcomeWords}, {"risk", s.risks, riskWords}} {
		for i, word := range list.given {
			list.given[i] = plainWord(list.flag, word)
			if err := oneOf(list.flag, list.given[i], list.allowed...); err != nil {
				return q, err
			}
		}
	}
	for _, word := range s.events {
		q.Events = append(q.Events, ledger.Event(word))
	}
	q.Dispositions, q.Outcomes, q.Risks, q.Tool = s.decisions, s.outcomes, s.risks, s.tool
	q.Servers, q.Sessions, q.Clients, q.Profiles, q.Approvers, q.Channels = s.servers, s.sessions, s.clients, s.profiles, s.approvers, s.channels
	for _, prefix := range s.runs {
		run, err := findRun(ctx, store, prefix)
		if err != nil {
			return q, err
		}
		q.Runs = append(q.Runs, run)
	}
	for _, filter := range s.filters {
		field, value, ok := strings.Cut(filter, "=")
		if !ok || field == "" {
			return q, &usageError{fmt.Errorf("--filter must be field=text, not %q", filter)}
		}
		if first, _, _ := strings.Cut(field, "."); !slices.Contains(recordFields(), first) {
			return q, &usageError{fmt.Errorf("--filter: rows have no field %q; they have %s", first, strings.Join(recordFields(), ", "))}
		}
		if q.Fields == nil {
			q.Fields = map[string]string{}
		}
		q.Fields[field] = value
	}
	if denied {
		if q.Fields == nil {
			q.Fields = map[string]string{}
		}
		q.Fields["event"] = string(ledger.Refusal)
	}
	if q.Since, err = moment("since", s.since, now); err != nil {
		return q, err
	}
	q.Until, err = moment("until", s.until, now)
	return q, err
}

// recordFields are the fields that a row's JSON may have.
func recordFields() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ledger.Record]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// plainWord is the log's word for what people say as well.
func plainWord(flag, word string) string {
	switch {
	case flag == "decision" && word == "denied":
		return "deny"
	case flag == "decision" && word == "allowed":
		return "allow"
	case flag == "outcome" && word == "denied":
		return ledger.Refused
	}
	return word
}

// oneOf is wrong usage unless word is one of allowed.
func oneOf(flag, word string, allowed ...string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return &usageError{fmt.Errorf("--%s must be one of %s, not %q", flag, strings.Join(allowed, ", "), word)}
}

// moment reads a time: how long ago, a date, or a date and time; without a
// zone it is that of this machine. An empty text is the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := period(text); err == nil {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, &usageError{fmt.Errorf("--%s must be a time such as 2h, 7d, 2026-01-31 or 2026-01-31T15:04, not %q", flag, text)}
}

// period reads a positive number of days ("90d") or a duration ("12h").
func period(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", text)
	}
	return d, err
}

// findRun is the run that an id, or the beginning of one, names.
func findRun(ctx context.Context, s ledger.Store, prefix string) (string, error) {
	for row, err := range s.Rows(ctx, ledger.Query{Runs: []string{prefix}, Limit: 1}) {
		if err != nil {
			return "", err
		}
		return row.Record.Run, nil
	}
	var found []string
	for row, err := range s.Rows(ctx, ledger.Query{Events: []ledger.Event{ledger.RunStarted}, Newest: true}) {
		if err != nil {
			return "", err
		}
		if run := row.Record.Run; prefix != "" && strings.HasPrefix(run, prefix) && !slices.Contains(found, run) {
			if found = append(found, run); len(found) == 6 {
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("the log has no run %q; runs list shows the runs", prefix)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%q could be %s", prefix, strings.Join(found, " or "))
}

// completeRun offers the newest runs to the shell.
func (con *console) completeRun(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	quiet := *con
	quiet.err = nowhere{}
	if err := withLog(c.Context(), &quiet, func(ctx context.Context, s *sqlstore.DB) error {
		for row, err := range s.Rows(ctx, ledger.Query{Events: []ledger.Event{ledger.RunStarted}, Newest: true, Limit: 200}) {
			if err != nil {
				return err
			}
			if r := row.Record; strings.HasPrefix(r.Run, prefix) && len(all) < 30 {
				all = append(all, fmt.Sprintf("%s\t%s %s", r.Run, r.Time.Local().Format(time.DateTime), dash(r.Client)))
			}
		}
		return nil
	}); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// nowhere is where talk goes that nobody reads.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// complete offers words for a flag to the shell.
func complete(c *cobra.Command, flag string, words []string) {
	completeWith(c, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func completeWith(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("codemode-bridge: " + err.Error()) // the flag was not added
	}
}
