package audit

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Selection says which rows a person wants, in the words of the command line. All
// fields that are set must match; a list matches if one of its words does.
type Selection struct {
	Events, Decisions, Outcomes, Risks                              []string // of the words below
	Servers, Runs, Sessions, Clients, Profiles, Approvers, Channels []string // a run by the beginning of its id, too
	Tool                                                            string   // a pattern over server__tool
	Since, Until                                                    string   // 2h, 7d, 2026-01-31, 2026-01-31T15:04
	Filters                                                         []string // field=text
}

// An InputError says what is wrong with a selection or another input of a person.
type InputError struct{ text string }

func (e *InputError) Error() string { return e.text }

func inputf(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// The words that the fields of a Selection take, where those are a few.
var (
	EventWords = []string{
		string(ledger.RunStarted), string(ledger.RunEnded), string(ledger.RunPaused), string(ledger.RunResumed), string(ledger.Preview), string(ledger.Intent), string(ledger.Outcome),
		string(ledger.Refusal), string(ledger.SavedScript), string(ledger.Asked), string(ledger.Answered), string(ledger.Verdict), string(ledger.Granted), string(ledger.Revoked), string(ledger.Lapsed),
		string(ledger.ServerAsked),
		string(ledger.ConfigChanged), string(ledger.BridgeStarted), string(ledger.BridgeEnded), string(ledger.SignedIn), string(ledger.AccountConnected), string(ledger.AccountDisconnected), string(ledger.StopAsked), string(ledger.Laptop),
		string(ledger.ToolChanged), string(ledger.ToolAccepted), string(ledger.ToolBlocked),
		string(ledger.Pruned), string(ledger.Repaired),
	}
	DecisionWords = []string{"allow", "ask", "deny"}
	OutcomeWords  = []string{ledger.Done, ledger.Failed, ledger.Refused, ledger.Unknown, ledger.Stopped, ledger.ConfigPending}
	RiskWords     = []string{"low", "medium", "high", "critical"}
)

// Query makes a store's query of the selection; times such as "2h" are before now. The
// error is an [InputError], or one of reading the store.
func (s *Selection) Query(ctx context.Context, store ledger.Reader, now time.Time) (q ledger.Query, err error) {
	denied := len(s.Decisions) == 1 && s.Decisions[0] == "denied"
	if denied { // by policy, by a person, or for want of one
		s.Decisions = nil
	}
	for _, list := range []struct {
		flag    string
		given   []string
		allowed []string
	}{{"event-type", s.Events, EventWords}, {"decision", s.Decisions, DecisionWords}, {"outcome", s.Outcomes, OutcomeWords}, {"risk", s.Risks, RiskWords}} {
		for i, word := range list.given {
			list.given[i] = plainWord(list.flag, word)
			if !slices.Contains(list.allowed, list.given[i]) {
				return q, inputf("--%s must be one of %s, not %q", list.flag, strings.Join(list.allowed, ", "), list.given[i])
			}
		}
	}
	for _, word := range s.Events {
		q.Events = append(q.Events, ledger.Event(word))
	}
	q.Dispositions, q.Outcomes, q.Risks, q.Tool = s.Decisions, s.Outcomes, s.Risks, s.Tool
	q.Servers, q.Sessions, q.Clients, q.Profiles, q.Approvers, q.Channels = s.Servers, s.Sessions, s.Clients, s.Profiles, s.Approvers, s.Channels
	for _, prefix := range s.Runs {
		run, err := FindRun(ctx, store, prefix)
		if err != nil {
			return q, err
		}
		q.Runs = append(q.Runs, run)
	}
	for _, filter := range s.Filters {
		field, value, ok := strings.Cut(filter, "=")
		if !ok || field == "" {
			return q, inputf("--filter must be field=text, not %q", filter)
		}
		if first, _, _ := strings.Cut(field, "."); !slices.Contains(recordFields(), first) {
			return q, inputf("--filter: rows have no field %q; they have %s", first, strings.Join(recordFields(), ", "))
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
	if q.Since, err = moment("since", s.Since, now); err != nil {
		return q, err
	}
	q.Until, err = moment("until", s.Until, now)
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

// plainWord translates a word that people use into the log's own.
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

// moment reads a time: a duration before now, a date, or a date and time, in this
// machine's zone unless it names one. An empty text is the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := Period(text); err == nil {
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
	return time.Time{}, inputf("--%s must be a time such as 2h, 7d, 2026-01-31 or 2026-01-31T15:04, not %q", flag, text)
}

// Period reads a positive number of days ("90d") or a duration ("12h").
func Period(text string) (time.Duration, error) {
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

// FindRun returns the id of the run that an id, or the beginning of one, names.
func FindRun(ctx context.Context, s ledger.Reader, prefix string) (string, error) {
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
