package admin

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// historyPageRows is how many records one page of the history is made of.
const historyPageRows = 400

// A historyFilter is one field of the history's form: a text, or one of Options.
type historyFilter struct {
	Name, Value string
	Example     string
	Options     []option
}

type option struct{ Value, Words string }

// historyFilters are those of the form, in its order.
var historyFilters = []historyFilter{
	{Name: "run"}, {Name: "tool", Example: "mail__*"},
	{Name: "event", Options: words(ledger.RunStarted, ledger.RunEnded, ledger.RunPaused, ledger.RunResumed, ledger.Preview, ledger.Intent, ledger.Outcome, ledger.Refusal,
		ledger.Asked, ledger.Answered, ledger.Verdict, ledger.ServerAsked, ledger.SavedScript, ledger.Granted, ledger.Revoked, ledger.Lapsed, ledger.ConfigChanged, ledger.BridgeStarted,
		ledger.BridgeEnded, ledger.SignedIn, ledger.StopAsked, ledger.Laptop, ledger.ToolChanged, ledger.ToolAccepted, ledger.ToolBlocked, ledger.Pruned, ledger.Repaired)},
	{Name: "risk", Options: words(profiles.Low.String(), profiles.Medium.String(), profiles.High.String(), profiles.Critical.String())},
	{Name: "outcome", Options: words(ledger.Done, ledger.Failed, ledger.Refused, ledger.Unknown, ledger.Stopped, ledger.ConfigPending, ledger.Vote)},
	{Name: "approver"},
	{Name: "channel", Options: words("elicitation", "page", "terminal", "api", "fallback", "grant", "timeout", "limit", "run")},
	{Name: "since", Options: []option{{"1h", "the last hour"}, {"24h", "the last day"}, {"168h", "the last week"}, {"720h", "the last 30 days"}}},
}

func words[T ~string](values ...T) []option {
	var all []option
	for _, v := range values {
		all = append(all, option{string(v), strings.ReplaceAll(string(v), "_", " ")})
	}
	return all
}

// A historyRow is one line of the history: everything that a page's records say about
// one call, or one record that belongs to no call.
type historyRow struct {
	ledger.Record // the newest; its empty fields are filled from older ones
	Answers       []historyAnswer
}

// A historyAnswer is the answer to a call by a person, or by what answered for one.
type historyAnswer struct {
	Answer, By, For, Channel, Comment string
	Uncounted                         bool
}

// rowsByCall returns records as rows, the newest first, with one row for each call.
func rowsByCall(rows []Row) []*historyRow {
	type key struct {
		run  string
		call int
	}
	var all []*historyRow
	of := map[key]*historyRow{}
	for _, row := range rows {
		rec := row.Record
		k := key{rec.Run, rec.Call}
		line := of[k]
		if line == nil || rec.Call == 0 {
			line = &historyRow{Record: ledger.Record{Event: rec.Event, Time: rec.Time, Run: rec.Run, Call: rec.Call}}
			all = append(all, line)
			of[k] = line
		}
		line.add(rec)
	}
	return all
}

// add puts what an older record says where the newer ones say nothing.
func (h *historyRow) add(rec ledger.Record) {
	answer := historyAnswer{rec.Answer, rec.Approver, rec.OnBehalfOf, rec.Channel, rec.Comment, rec.Counted != nil && !*rec.Counted}
	// Several records may be of one answer: that it was given, and that it counts.
	is := slices.IndexFunc(h.Answers, func(has historyAnswer) bool {
		return has.By == answer.By && has.Channel == answer.Channel && has.Uncounted == answer.Uncounted && (has.Answer == answer.Answer || has.Answer == "" || answer.Answer == "")
	})
	switch {
	case is >= 0:
		has := &h.Answers[is]
		has.Answer, has.For, has.Comment = cmp.Or(has.Answer, answer.Answer), cmp.Or(has.For, answer.For), cmp.Or(has.Comment, answer.Comment)
	case answer.Answer != "" || answer.By != "":
		h.Answers = append(h.Answers, answer)
	}
	h.Request, h.Server, h.Tool = cmp.Or(h.Request, rec.Request), cmp.Or(h.Server, rec.Server), cmp.Or(h.Tool, rec.Tool)
	h.Disposition, h.Risk = cmp.Or(h.Disposition, rec.Disposition), cmp.Or(h.Risk, rec.Risk)
	if h.Args == nil {
		h.Args = rec.Args
	}
	if h.Reasons == nil {
		h.Reasons = rec.Reasons
	}
	switch rec.Event {
	case ledger.Asked, ledger.Answered, ledger.Verdict:
		if h.Call > 0 {
			return // an answer is not the outcome of the call
		}
	}
	if h.Outcome == "" {
		h.Outcome, h.Error = rec.Outcome, cmp.Or(h.Error, rec.Error)
	}
}

func (s pages) historyPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	given := r.URL.Query()
	for name, v := range given { // an empty field of the form says nothing
		if len(v) == 1 && v[0] == "" {
			given.Del(name)
		}
	}
	var body struct {
		Filters []historyFilter
		Rows    []*historyRow
		Older   template.URL // of the page with older rows
		Problem string
	}
	for _, f := range historyFilters {
		f.Value = given.Get(f.Name)
		if f.Options != nil && f.Value != "" && !slices.ContainsFunc(f.Options, func(o option) bool { return o.Value == f.Value }) {
			f.Options = append(slices.Clone(f.Options), option{f.Value, f.Value}) // of an address that somebody wrote
		}
		body.Filters = append(body.Filters, f)
	}
	asked := url.Values(maps.Clone(given))
	if !asked.Has("limit") {
		asked.Set("limit", fmt.Sprint(historyPageRows))
	}
	rows, err := s.rows(r.Context(), asked)
	if f := classify(err); err != nil && f.status == http.StatusUnprocessableEntity {
		body.Problem = f.message
	} else if err != nil {
		return err
	}
	body.Rows = rowsByCall(rows)
	if n := len(rows); n > 0 && fmt.Sprint(n) == asked.Get("limit") {
		given.Set("before", fmt.Sprint(rows[n-1].Seq))
		body.Older = template.URL("/history?" + given.Encode()) // which escapes what it must
	}
	return s.tab(who, w, r, "history", "History", body)
}

// A Row is one record of the history.
type Row struct {
	Seq    int64         `json:"seq"`
	Record ledger.Record `json:"record"`
}

const maxRows = 1000

// rows are the records that a query of the URL selects, the newest first.
func (s *Site) rows(ctx context.Context, v url.Values) ([]Row, error) {
	if s.o.Records == nil {
		return nil, missing("records")
	}
	q := ledger.Query{Newest: true, Limit: 100, Tool: v.Get("tool")}
	var events []string
	lists := map[string]*[]string{"event": &events, "run": &q.Runs, "session": &q.Sessions, "client": &q.Clients, "profile": &q.Profiles,
		"server": &q.Servers, "approver": &q.Approvers, "channel": &q.Channels, "disposition": &q.Dispositions, "outcome": &q.Outcomes, "risk": &q.Risks}
	if err := knownFilters(v, lists); err != nil {
		return nil, err
	}
	for name, list := range lists {
		*list = slices.DeleteFunc(slices.Clone(v[name]), func(text string) bool { return text == "" })
	}
	for _, event := range events {
		q.Events = append(q.Events, ledger.Event(event))
	}
	for name, t := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		text := v.Get(name)
		if text == "" {
			continue
		}
		if back, err := time.ParseDuration(text); err == nil {
			*t = s.o.Now().Add(-back)
		} else if *t, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, invalid(name+` must be a time such as "2026-11-21T08:00:00Z", or how long ago, such as "2h"`, "")
		}
	}
	for name, n := range map[string]*int64{"after": &q.After, "before": &q.Before} {
		if text := v.Get(name); text != "" {
			var err error
			if *n, err = strconv.ParseInt(text, 10, 64); err != nil || *n < 0 {
				return nil, invalid(name+" must be the number of a row", "")
			}
		}
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxRows {
			return nil, invalid(fmt.Sprintf("limit must be a number from 1 to %d", maxRows), "")
		}
		q.Limit = n
	}
	rows := []Row{}
	for row, err := range s.o.Records.Rows(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		rows = append(rows, Row{row.Seq, row.Record})
	}
	return rows, nil
}

// knownFilters refuses filters that select nothing: an unknown one, one that takes a
// single value and is given twice, and an impossible value. List filters take any
// number of values.
func knownFilters(v url.Values, lists map[string]*[]string) error {
	known := append(slices.Collect(maps.Keys(lists)), "tool", "since", "until", "after", "before", "limit")
	slices.Sort(known)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch {
		case !slices.Contains(known, name):
			return invalid(fmt.Sprintf("there is no filter %q; there are %s", canon.Escape(name), strings.Join(known, ", ")), "")
		case lists[name] == nil && len(v[name]) > 1:
			return invalid("the filter "+name+" is given twice and takes one value", "")
		}
	}
	for name, words := range map[string][]string{"risk": {"low", "medium", "high", "critical"}, "disposition": {"allow", "ask", "deny"}} {
		for _, text := range v[name] {
			if text != "" && !slices.Contains(words, text) {
				return invalid(fmt.Sprintf("%s must be one of %s, not %q", name, strings.Join(words, ", "), canon.Escape(text)), "")
			}
		}
	}
	return nil
}

func (s *Site) history(_ *caller, w http.ResponseWriter, r *http.Request) error {
	rows, err := s.rows(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"rows": rows})
}
