package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/principal"
)

// maxWait bounds how long a request may wait for a result.
const maxWait = time.Minute

// waitTime reads ?wait=, a number of seconds or a duration such as 500ms.
func waitTime(r *http.Request, byDefault time.Duration) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return min(byDefault, maxWait), nil
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

// runHandlers are the API of runs.
type runHandlers struct{ *Site }

// startRun begins a run and waits a while for its result: until it ends, asks
// somebody, or the time is up.
func (s runHandlers) startRun(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Runs == nil {
		return missing("runs")
	}
	wait, err := waitTime(r, s.o.Limits.Wait)
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
	id, err := s.o.Runs.Start(principal.With(r.Context(), principal.Principal{Name: who.Name, Groups: who.Groups}), profile, code, input, who.Name)
	if err != nil {
		return invalid(canon.Escape(err.Error()), "")
	}
	return s.sendResult(w, r, id, wait, true)
}

// result gives the result of a run to whoever asked for it, or to an admin.
func (s runHandlers) result(who *caller, w http.ResponseWriter, r *http.Request) error {
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

// sendResult answers 200 with a run's result, or 202 with what the run waits for.
func (s runHandlers) sendResult(w http.ResponseWriter, r *http.Request, id string, wait time.Duration, untilAsked bool) error {
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // the server's is for the request, which has been read
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	for {
		changed, requested := s.o.Runs.Changed(), s.o.Requests.Changed() // before looking: nothing is missed
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
		asks, err := s.o.Requests.Requests(r.Context(), approval.Filter{Run: id, Open: s.o.Now()})
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
		all[i].Client, all[i].Requester = canon.Escape(all[i].Client), canon.Escape(all[i].Requester)
	}
	return all
}

func (s runHandlers) listRuns(_ *caller, w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, map[string]any{"runs": append([]Run{}, s.runs(r.Context())...)})
}

// stopRun ends a run, even if that cannot be recorded; the answer then says so.
func (s runHandlers) stopRun(who *caller, w http.ResponseWriter, r *http.Request) error {
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

// resumeRun continues a paused run; the run itself records that.
func (s runHandlers) resumeRun(who *caller, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if s.o.Runs == nil {
		return ErrUnknown
	}
	if err := s.o.Runs.Resume(context.WithoutCancel(r.Context()), id, who.Name+" ("+who.channel+")"); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"run": id, "resumed": true})
}
