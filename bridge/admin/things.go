package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// maxWait bounds how long a request may wait for a result.
const maxWait = time.Minute

// waitTime reads ?wait=, a number of seconds or a duration such as 500ms.
func waitTime(r *http.Request, otherwise time.Duration) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return min(otherwise, maxWait), nil
	}
	wait, err := time.ParseDuration(text)
	if seconds, bad := strconv.Atoi(text); bad == nil {
		wait, err = time.Duration(min(seconds, int(maxWait.Seconds())))*time.Second, nil
	}
	if err != nil || wait < 0 {
		return 0, invalid(`wait must be a time such as "2s"`, "")
	}
	return min(wait, maxWait), nil
}

func (s *Site) me(who *caller, w http.ResponseWriter, _ *http.Request) error {
	may := []approval.Verb{}
	for _, v := range []approval.Verb{approval.Look, approval.Answer, approval.Revoke, approval.Stop, approval.Start, approval.Edit, approval.ConfirmConfig} {
		if who.May(v) {
			may = append(may, v)
		}
	}
	return answer(w, http.StatusOK, map[string]any{"name": canon.Visible(who.Name), "role": who.Role, "may": may})
}

// startRun begins a run and waits a while for its result: until it has ended,
// asks somebody, or the time is over.
func (s *Site) startRun(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Runs == nil {
		return missing("runs")
	}
	wait, err := waitTime(r, s.o.Wait)
	if err != nil {
		return err
	}
	var profile, code string
	var input json.RawMessage
	if err := s.read(w, r, fields{"profile": &profile, "code": &code, "input": &input}); err != nil {
		return err
	}
	if code == "" {
		return invalid("code is missing", "it is the script to run")
	}
	id, err := s.o.Runs.Start(r.Context(), profile, code, input, who.Name)
	if err != nil {
		return invalid(canon.Visible(err.Error()), "")
	}
	return s.sendResult(w, r, id, wait, true)
}

// result gives the result of a run to whoever asked for it, or to an admin.
func (s *Site) result(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Runs == nil {
		return missing("runs")
	}
	wait, err := waitTime(r, 0)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	run, ok := s.o.Runs.Run(r.Context(), id)
	switch {
	case !ok:
		return ErrUnknown
	case who.Role != approval.Admin && (run.Requester == "" || run.Requester != who.Name):
		return &failure{http.StatusForbidden, "role", "the result of a run is for who started it, and for admins", ""}
	}
	return s.sendResult(w, r, id, wait, false)
}

// sendResult answers 200 with a run's result, or 202 with what it waits for.
func (s *Site) sendResult(w http.ResponseWriter, r *http.Request, id string, wait time.Duration, untilAsked bool) error {
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // the server's is for the request, which has been read
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	for {
		changed, requested := s.o.Runs.Changed(), s.o.Requests.Requested() // before looking: nothing is missed
		run, ok := s.o.Runs.Run(r.Context(), id)
		if !ok {
			return ErrUnknown
		}
		if run.State.Over() {
			type ended struct {
				Run
				Result json.RawMessage `json:"result,omitempty"`
			}
			return answer(w, http.StatusOK, ended{run, run.Result})
		}
		asks, err := s.o.Requests.Entries(r.Context(), approval.Filter{Run: id, Open: s.o.Now()})
		if err != nil {
			return fmt.Errorf("reading what run %s asks: %w", id, err)
		}
		if ctx.Err() != nil || untilAsked && len(asks) > 0 {
			type unfinished struct {
				Run
				Pending []string `json:"pending"`
			}
			out := unfinished{Run: run, Pending: []string{}}
			for _, e := range asks {
				out.Pending = append(out.Pending, e.ID)
			}
			w.Header().Set("Location", "/api/result/"+url.PathEscape(id))
			return answer(w, http.StatusAccepted, out)
		}
		select {
		case <-changed:
		case <-requested:
		case <-ctx.Done():
		case <-s.ctx.Done():
			cancel()
		}
	}
}

func (s *Site) runs(ctx context.Context) []Run {
	if s.o.Runs == nil {
		return nil
	}
	all := s.o.Runs.List(ctx)
	for i := range all {
		all[i].Client, all[i].Requester = canon.Visible(all[i].Client), canon.Visible(all[i].Requester)
	}
	return all
}

func (s *Site) listRuns(_ *caller, w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, map[string]any{"runs": append([]Run{}, s.runs(r.Context())...)})
}

// stopRun ends a run. It is done even if it cannot be recorded, and then says so.
func (s *Site) stopRun(who *caller, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if s.o.Runs == nil {
		return ErrUnknown
	}
	if err := s.o.Runs.Stop(context.WithoutCancel(r.Context()), id, who.Name); err != nil {
		return err
	}
	if err := s.record(r.Context(), who, ledger.Record{Event: ledger.StopAsked, Run: id}); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"run": id, "stopped": true})
}

// resumeRun goes on with a paused run; that it does is recorded by the run.
func (s *Site) resumeRun(who *caller, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if s.o.Runs == nil {
		return ErrUnknown
	}
	if err := s.o.Runs.Resume(context.WithoutCancel(r.Context()), id, who.Name+" ("+who.channel+")"); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"run": id, "resumed": true})
}

// record writes down what somebody did here.
func (s *Site) record(ctx context.Context, who *caller, rec ledger.Record) error {
	rec.Time, rec.Approver, rec.Channel, rec.Durable = s.o.Now(), who.Name, who.channel, true
	if err := s.o.Record.Record(context.WithoutCancel(ctx), rec); err != nil {
		return fmt.Errorf("recording what %s did: %w", who.Name, err)
	}
	return nil
}

// A Grant is a grant as the API shows it.
type Grant struct {
	ID      string    `json:"id"`
	Script  string    `json:"script"` // the tool's name in scripts
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Profile string    `json:"profile,omitempty"`
	Session string    `json:"session"`
	Client  string    `json:"client,omitempty"` // of the session, as it calls itself
	Covers  string    `json:"covers,omitempty"` // the arguments, in words, cut where they are long
	AnyArgs bool      `json:"any_args"`
	Args    string    `json:"args,omitempty"` // the digest of the only arguments it covers
	By      string    `json:"by"`
	Made    time.Time `json:"made"`
	Until   time.Time `json:"until"`
	Left    int       `json:"left"` // uses
	// Configuration names the one whose calls it covers, if it is another one.
	Configuration string `json:"configuration,omitempty"`
}

func (s *Site) grants(ctx context.Context) ([]Grant, error) {
	all, err := s.o.Requests.Grants(ctx)
	if err != nil {
		return nil, err
	}
	shown := []Grant{}
	for _, g := range all {
		one := Grant{ID: g.ID, Script: canon.Visible(g.Script), Server: canon.Visible(g.Key.Server), Tool: canon.Visible(g.Key.Tool),
			Profile: cmp.Or(g.Profile, g.Key.Profile), Session: g.Key.Session, Client: canon.Visible(g.Client), Covers: g.Covers, AnyArgs: g.AnyArgs, By: canon.Visible(g.By), Made: g.Made, Until: g.Until, Left: g.Left}
		if !g.AnyArgs {
			one.Args = g.Key.Args.String()
		}
		if g.Key.Configuration != s.o.Configuration {
			one.Configuration = canon.Visible(cmp.Or(g.Configuration, "another"))
		}
		shown = append(shown, one)
	}
	return shown, nil
}

func (s *Site) listGrants(_ *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.grants(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"grants": all})
}

// revoke ends a grant. It is done even if it cannot be recorded, and then says so.
func (s *Site) revoke(who *caller, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	all, err := s.o.Requests.Grants(r.Context())
	if err != nil {
		return err
	}
	rec := ledger.Record{Event: ledger.Revoked}
	for _, g := range all {
		if g.ID == id {
			rec.Session, rec.Profile, rec.Server, rec.Tool = g.Key.Session, g.Key.Profile, g.Key.Server, g.Key.Tool
		}
	}
	found, err := s.o.Requests.Revoke(r.Context(), id)
	if err != nil {
		return fmt.Errorf("revoking a grant: %w", err)
	}
	if !found {
		return ErrUnknown
	}
	rec.Detail, _ = json.Marshal(map[string]string{"grant": id})
	if err := s.record(r.Context(), who, rec); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"id": id, "revoked": true})
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

// knownFilters refuses what selects nothing: a filter that there is not, one that
// is given twice and takes one value, and a value that it never has. The lists take
// any number of values.
func knownFilters(v url.Values, lists map[string]*[]string) error {
	known := append(slices.Collect(maps.Keys(lists)), "tool", "since", "until", "after", "before", "limit")
	slices.Sort(known)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch {
		case !slices.Contains(known, name):
			return invalid(fmt.Sprintf("there is no filter %q; there are %s", canon.Visible(name), strings.Join(known, ", ")), "")
		case lists[name] == nil && len(v[name]) > 1:
			return invalid("the filter "+name+" is given twice and takes one value", "")
		}
	}
	for name, words := range map[string][]string{"risk": {"low", "medium", "high", "critical"}, "disposition": {"allow", "ask", "deny"}} {
		for _, text := range v[name] {
			if text != "" && !slices.Contains(words, text) {
				return invalid(fmt.Sprintf("%s must be one of %s, not %q", name, strings.Join(words, ", "), canon.Visible(text)), "")
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

func (s *Site) servers(_ *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Status == nil {
		return missing("status")
	}
	return answer(w, http.StatusOK, s.o.Status(r.Context()))
}

// A Source is the text that the profiles are written in.
type Source struct {
	Text     string `json:"text"`
	Revision string `json:"revision"`
}

// policy returns the profiles, and their source for those who may edit it.
func (s *Site) policy(who *caller, ctx context.Context) ([]Profile, *Source, error) {
	if s.o.Policy == nil {
		return nil, nil, missing("profiles to show")
	}
	all := append([]Profile{}, s.o.Policy.Profiles()...)
	if !who.May(approval.Edit) {
		return all, nil, nil
	}
	text, revision, err := s.o.Policy.Source(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the profiles: %w", err)
	}
	return all, &Source{text, revision}, nil
}

func (s *Site) listProfiles(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, source, err := s.policy(who, r.Context())
	if err != nil {
		return err
	}
	out := map[string]any{"profiles": all}
	if source != nil {
		out["source"] = source
	}
	return answer(w, http.StatusOK, out)
}

// saveProfiles puts another text in force. It is recorded before it is done.
func (s *Site) saveProfiles(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Policy == nil {
		return missing("profiles to edit")
	}
	var text, revision string
	if err := s.read(w, r, fields{"text": &text, "revision": &revision}); err != nil {
		return err
	}
	if revision == "" {
		return invalid("revision is missing", "send the one that GET /api/profiles gave with the text")
	}
	detail, _ := json.Marshal(map[string]string{"edit": "profiles", "was": revision})
	if err := s.record(r.Context(), who, ledger.Record{Event: ledger.ConfigChanged, Detail: detail}); err != nil {
		return err
	}
	if err := s.o.Policy.Save(r.Context(), text, revision, who.Name); err != nil {
		refused := ledger.Record{Event: ledger.ConfigChanged, Outcome: ledger.Refused, Error: canon.VisibleLines(canon.Redact(err.Error())), Detail: detail}
		if err := s.record(r.Context(), who, refused); err != nil {
			return err
		}
		if classify(err).status != http.StatusInternalServerError {
			return err
		}
		return invalid(canon.VisibleLines(err.Error()), "nothing was changed")
	}
	return answer(w, http.StatusOK, map[string]any{"saved": true})
}

func (s *Site) listSessions(_ *caller, w http.ResponseWriter, _ *http.Request) error {
	if s.o.Sessions == nil {
		return missing("sessions")
	}
	all := append([]Session{}, s.o.Sessions.List()...)
	for i := range all {
		all[i].Client = canon.Visible(all[i].Client)
	}
	return answer(w, http.StatusOK, map[string]any{"sessions": all})
}

// tighten puts a session under another profile. Taking that back loosens, so
// it is recorded before it is done.
func (s *Site) tighten(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Sessions == nil {
		return missing("sessions")
	}
	var profile *string
	if err := s.read(w, r, fields{"profile": &profile}); err != nil {
		return err
	}
	if profile == nil {
		return invalid("profile is missing", `"" takes back what was set before`)
	}
	id := r.PathValue("id")
	what := "session " + canon.Visible(id) + " is put under profile " + canon.Visible(*profile)
	if *profile == "" {
		what = "session " + canon.Visible(id) + " is under the profile of its tools alone again"
	}
	rec := ledger.Record{Event: ledger.ConfigChanged, Session: id, Profile: *profile, Reasons: []string{what}}
	if err := s.record(r.Context(), who, rec); err != nil {
		return err
	}
	if err := s.o.Sessions.Tighten(r.Context(), id, *profile, who.Name); err != nil {
		rec.Outcome, rec.Error = ledger.Refused, canon.Visible(err.Error())
		if lost := s.record(r.Context(), who, rec); lost != nil {
			s.o.Logger.Error("recording that a session stays as it was", "err", lost)
		}
		if classify(err).status != http.StatusInternalServerError {
			return err
		}
		return invalid(canon.Visible(err.Error()), "")
	}
	return answer(w, http.StatusOK, map[string]any{"session": id, "profile": *profile})
}
