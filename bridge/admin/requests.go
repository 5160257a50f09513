package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

// A Request is a request as the API shows it.
type Request struct {
	ID string `json:"id"`
	// Digest is over everything that an approval covers; a verdict must carry it.
	Digest canon.Digest `json:"digest"`
	// Status is pending, approved, denied, timeout, expired, or stopped, where
	// somebody stopped the run before anybody answered.
	Status string `json:"status"`
	// By, At and Verdict say who settled it, or stopped the run, when and how.
	By      string            `json:"by,omitempty"`
	At      time.Time         `json:"at,omitzero"`
	Verdict *approval.Verdict `json:"verdict,omitempty"`

	Run     string    `json:"run"`
	Profile string    `json:"profile,omitempty"`
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"` // then it is denied
	// What an approval may and must have.
	Wider
	Reason   bool   `json:"reason_needed"`   // and of whom
	Typed    bool   `json:"typed_needed"`    // the tool's name, in typed
	Editable bool   `json:"args_editable"`   // what is shown is all that is sent
	May      bool   `json:"you_may_approve"` // by role, risk and delegation
	MayNot   string `json:"you_may_not,omitempty"`
	// Elsewhere reports whether another configuration asks. Its bridge then judges
	// whether an answer counts, and May only says that one may be given.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Unjudged are answers that the asking bridge has not judged yet.
	Unjudged []approval.Verdict `json:"unjudged,omitempty"`
	// Always is what who may edit the configuration can have written, so that nobody is
	// asked about calls like these again; only where one request is asked for.
	Always *Proposal `json:"always,omitempty"`
	// Identical are other pending requests about the very same call.
	Identical []Same `json:"identical,omitempty"`
	// Calls say, once the request is settled, how each call was answered and what
	// became of it.
	Calls []ledger.CallOutcome `json:"calls,omitempty"`
	// Edited, if not nil, says that the approver changed the call's arguments: the
	// question was about those in the description, and these replace them.
	Edited *wording.EditedCall `json:"edited,omitempty"`

	wording.Description `json:"description"`
}

// Wider is what an approval may have beyond the calls that were asked about.
type Wider struct {
	Remember bool   `json:"remember"`         // a scope beyond "once"
	Words    string `json:"wider,omitempty"`  // what such a scope binds and leaves free
	Counts   []int  `json:"counts,omitempty"` // the numbers of calls that are proposed for the scope "run"
	Forget   bool   `json:"may_forget"`       // what was read before, with the scope "once"
}

// A Same names a request that is about the same call as another.
type Same struct {
	ID     string       `json:"id"`
	Digest canon.Digest `json:"digest"`
}

// status returns the word for what became of a request.
func status(e approval.StoredRequest, now time.Time) string {
	switch v := e.Verdict; {
	case v == nil && e.Open(now):
		return "pending"
	case v == nil, v.Reason == approval.Timeout:
		return "timeout"
	case v.Approve:
		return "approved"
	case v.Stopped != "":
		return "stopped"
	case v.By == "":
		return "expired"
	default:
		return "denied"
	}
}

// requestFor returns a stored request as the caller may see it.
func (s *Site) requestFor(who *caller, e approval.StoredRequest) Request {
	now := s.o.Now()
	d := e.Decision
	link := ""
	if s.o.Base != "" {
		link = s.o.Base + "/r/" + e.ID
	}
	votes, elsewhere := e.Votes, e.ConfigurationID() != s.o.Configuration
	if !elsewhere {
		votes = s.o.Approvers().Standing(e.Request, e.Votes, now)
	}
	r := Request{
		ID: e.ID, Digest: e.Digest(), Status: status(e, now), Verdict: e.Verdict, Run: e.Run, Profile: d.Profile,
		Asked: e.Asked, Until: e.Until, Wider: Wider{Remember: len(e.Wider()) > 0, Words: e.WiderWords(), Forget: d.MayForget()}, Reason: d.RequireReason, Typed: d.Manual,
		Editable: e.Editable(), Elsewhere: elsewhere,
		Description: wording.Describe(e.Request, wording.DescribeOptions{At: link, Votes: votes}),
	}
	if r.Unjudged = e.Unjudged(); r.Remember {
		r.Counts = e.Counts()
	}
	if e.Verdict != nil {
		v := e.Verdict.Shown()
		r.Verdict, r.By, r.At, r.Edited = &v, cmp.Or(v.By, v.Stopped), v.Time, wording.Edited(&e)
	}
	yes, err := s.o.Approvers().Sign(who.Approver, e.Request, approval.Verdict{Approve: true}, who.channel, now)
	switch {
	case err != nil:
		r.MayNot = canon.Escape(err.Error())
	case e.SelfApproval(yes) != nil:
		r.MayNot = canon.Escape(e.SelfApproval(yes).Error())
	case slices.ContainsFunc(e.Votes, func(v approval.Verdict) bool { return v.By == who.Name }):
		r.MayNot = "you said yes already; others are needed"
	default:
		r.May = true
	}
	return r
}

// entry finds one request.
func (s *Site) entry(ctx context.Context, id string) (approval.StoredRequest, error) {
	if id == "" {
		return approval.StoredRequest{}, approval.ErrUnknown
	}
	all, err := s.o.Requests.Requests(ctx, approval.Filter{ID: id})
	if err != nil {
		return approval.StoredRequest{}, fmt.Errorf("reading request %s: %w", canon.Escape(id), err)
	}
	if len(all) != 1 {
		return approval.StoredRequest{}, approval.ErrUnknown
	}
	return all[0], nil
}

// pending returns the requests that can be answered now, the oldest first.
func (s *Site) pending(ctx context.Context) ([]approval.StoredRequest, error) {
	all, err := s.o.Requests.Requests(ctx, approval.Filter{Open: s.o.Now()})
	if err != nil {
		return nil, fmt.Errorf("reading the pending requests: %w", err)
	}
	return all, nil
}

func (s *Site) listPending(who *caller, w http.ResponseWriter, r *http.Request) error {
	entries, err := s.pending(r.Context())
	if err != nil {
		return err
	}
	all := make([]Request, len(entries))
	for i, e := range entries {
		all[i] = s.requestFor(who, e)
		all[i].Identical = identical(e, entries)
	}
	return answer(w, http.StatusOK, map[string]any{"pending": all, "now": s.o.Now()})
}

func (s *Site) showPending(who *caller, w http.ResponseWriter, r *http.Request) error {
	shown, _, err := s.fullRequest(who, r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown)
}

// fullRequest returns one request with all that is known about it.
func (s *Site) fullRequest(who *caller, r *http.Request) (Request, approval.StoredRequest, error) {
	e, err := s.entry(r.Context(), r.PathValue("id"))
	if err != nil {
		return Request{}, e, err
	}
	shown := s.requestFor(who, e)
	if shown.Status == "pending" {
		others, err := s.pending(r.Context())
		if err != nil {
			return Request{}, e, err
		}
		shown.Identical = identical(e, others)
		if shown.Always, err = (edits{s}).proposal(r.Context(), who, shown, e); err != nil {
			return Request{}, e, err
		}
	}
	if e.Verdict != nil {
		if shown.Calls, err = s.outcomes(r.Context(), e); err != nil {
			return Request{}, e, err
		}
	}
	return shown, e, nil
}

// identical finds the other requests about the very same call, whoever makes it.
func identical(e approval.StoredRequest, all []approval.StoredRequest) []Same {
	var same []Same
	for _, o := range all {
		if o.ID == e.ID || len(o.Items) != 1 || len(e.Items) != 1 {
			continue
		}
		a, b := e.Items[0].Key, o.Items[0].Key
		a.Session, b.Session = "", ""
		if a == b {
			same = append(same, Same{o.ID, o.Digest()})
		}
	}
	return same
}

// outcomes returns the calls of a settled request, each with its own answer and
// outcome.
func (s *Site) outcomes(ctx context.Context, e approval.StoredRequest) ([]ledger.CallOutcome, error) {
	states := map[int]ledger.CallState{}
	if s.o.Records != nil {
		var err error
		if states, err = ledger.CallStates(ctx, s.o.Records, e.Run); err != nil {
			return nil, err
		}
	}
	all := make([]ledger.CallOutcome, len(e.Items))
	for i, item := range e.Items {
		made := item.Call
		if item.Planned {
			made = item.Taken
		}
		all[i] = ledger.NewCallOutcome(made, e.Verdict.Answer(item.Call), states)
		all[i].Call = item.Call
		all[i].Error = canon.Escape(all[i].Error)
	}
	return all, nil
}

// decide settles a request by an approver's verdict.
func (s *Site) decide(who *caller, w http.ResponseWriter, r *http.Request) error {
	var decision, scope, reason, typed string
	var about *canon.Digest
	var rows []int
	var count int
	var noMore, list, forget bool
	var args json.RawMessage
	if err := s.read(w, r, fields{"decision": &decision, "scope": &scope, "reason": &reason, "rows": &rows,
		"args": &args, "typed": &typed, "count": &count, "no_more": &noMore, "list": &list, "forget": &forget, "digest": &about}); err != nil {
		return err
	}
	if len(reason) > maxReason {
		return invalid(fmt.Sprintf("a reason has at most %d bytes", maxReason), "")
	}
	v := approval.Verdict{Text: strings.TrimSpace(reason), List: list}
	switch decision {
	case "approve":
		v.Approve, v.Scope, v.Count, v.Forget, v.Rows, v.Typed = true, approval.Scope(scope), count, forget, rows, typed
		if noMore {
			return invalid("no_more belongs to a no", "")
		}
		if len(args) > 0 && string(args) != "null" {
			v.Args = args
		}
	case "deny", "stop":
		v.Stop, v.NoMore = decision == "stop", noMore
		if scope != "" || count != 0 || forget || rows != nil || len(args) > 0 || typed != "" {
			return invalid("a no has a reason and no_more, and nothing else", "")
		}
	default:
		return invalid(`decision must be "approve", "deny" or "stop"`, `"stop" is a no that ends the run`)
	}
	if about == nil {
		return invalid("digest is missing", "send the digest of the request that you decide on, as /api/pending gives it")
	}
	id := r.PathValue("id")
	e, err := s.entry(r.Context(), id)
	if err != nil {
		return err
	}
	now := s.o.Now()
	signed, err := s.o.Approvers().Sign(who.Approver, e.Request, v, who.channel, now)
	if err != nil {
		rec := ledger.Record{Event: ledger.Verdict, Run: e.Run, Server: e.Server, Tool: e.Tool, Risk: e.Decision.Risk.String(), Configuration: e.ConfigurationID(),
			Request: e.ID, Comment: canon.Escape(canon.Redact(v.Text)), Counted: new(false), Outcome: ledger.Refused, Error: canon.Escape(err.Error())}
		if lost := s.record(r.Context(), who, rec); lost != nil {
			s.o.Logger.Error("recording a refused verdict", "err", lost)
		}
		return &failure{http.StatusForbidden, "role", canon.Escape(err.Error()), "somebody with another role, or a higher limit, can"}
	}
	e, err = s.o.Settler.Settle(r.Context(), id, *about, signed)
	if errors.Is(err, approval.ErrUnjudged) {
		return answer(w, http.StatusAccepted, map[string]any{"status": "pending", "by": canon.Escape(signed.By), "at": now, "kept": err.Error()})
	}
	if err != nil {
		return fmt.Errorf("settling request %s: %w", canon.Escape(id), err)
	}
	type decided struct {
		Status  string            `json:"status"` // approved, denied, or pending if more approvals are needed
		By      string            `json:"by"`
		At      time.Time         `json:"at"`
		Missing string            `json:"missing,omitempty"`
		Verdict *approval.Verdict `json:"verdict,omitempty"`
	}
	out := decided{Status: status(e, now), By: canon.Escape(signed.By), At: now, Missing: canon.Escape(e.Missing())}
	if e.Verdict != nil {
		shown := s.requestFor(who, e)
		out.By, out.At, out.Verdict, out.Missing = shown.By, shown.At, shown.Verdict, ""
	}
	return answer(w, http.StatusOK, out)
}

const maxReason = 4000

// critical reports whether a request must be read for a while before it is approved.
func critical(r Request) bool { return r.Risk == profiles.Critical.String() }

// needsReading reports whether a request must be read to its end before it is approved,
// and approved on its own.
func needsReading(r Request) bool { return critical(r) || r.Risk == profiles.High.String() }
