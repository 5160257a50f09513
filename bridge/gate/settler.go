package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A Settler takes people's verdicts from every channel: it settles requests, and
// records verdicts that settle none. A gate has one; a program that only answers,
// such as a command line beside a running bridge, makes its own.
type Settler struct {
	Broker   *approval.Broker
	Recorder ledger.Recorder
	// Approvers reports whether anybody could answer on an authenticated channel;
	// nil means that nobody ever can.
	Approvers func() bool
	Now       func() time.Time // nil means time.Now
	// Redact hides secrets in what people wrote; nil means canon.Redact.
	Redact func(string) string
	// Wait is how long an author waits for another bridge to judge their verdict;
	// 0 means 3 s.
	Wait time.Duration
	// Fits says what is wrong with arguments that a person wrote for a call; nil
	// means that they cannot be checked here. They are checked again before they
	// are sent.
	Fits func(e approval.StoredRequest, args json.RawMessage) error
}

// Listen makes the settler record what becomes of verdicts that other bridges relay
// and its broker judges. It is called once, before the broker is used. By the time
// of the record such a verdict already counts, or not: losing the record does not
// change that, and the recorder reports the loss itself.
func (s *Settler) Listen() {
	s.Broker.OnJudged(func(e approval.StoredRequest, v approval.Verdict, wrong error) {
		_ = s.recordOutcome(context.Background(), e.ID, e, v, wrong) // it has happened, whoever waits
	})
}

// Settle settles the request with the given id by a person's verdict. The verdict is
// recorded before it counts, even if no call waits for it any more. If it settles
// nothing, because another came first or it is not permitted, that is recorded too
// and the error returned. A channel that reached nobody settles nothing as long as
// an approver may still answer.
//
// If another bridge judges the verdict, Settle waits a while for it to do so:
// [approval.ErrUnjudged] means that it has not yet.
func (s *Settler) Settle(ctx context.Context, id string, about canon.Digest, v approval.Verdict) (approval.StoredRequest, error) {
	e, err := s.entry(ctx, id)
	if err != nil {
		return approval.StoredRequest{}, err
	}
	if v.Reason == approval.NoApprover && !v.Approve && s.queues(e.Decision) {
		return e, nil
	}
	if v.Approve || v.Reason != approval.NoApprover { // otherwise nobody has answered
		if err := s.record(ctx, ledger.Answered, id, e, v, nil); err != nil {
			return approval.StoredRequest{}, err
		}
	}
	if err = s.checkEdit(e, v); err == nil {
		e, err = s.Broker.Settle(ctx, id, about, v)
	}
	if brought := (*approval.RelayedError)(nil); errors.As(err, &brought) { // the bridge that judges it records the outcome
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Wait, 3*time.Second))
		defer cancel()
		return s.Broker.Outcome(ctx, id, brought.ID)
	}
	if lost := s.recordOutcome(ctx, id, e, v, err); err == nil {
		err = lost
	}
	return e, err
}

// queues reports whether approvers answer a question with this decision if nobody
// answers it at the client.
func (s *Settler) queues(of profiles.Decision) bool {
	return s.Approvers != nil && s.Approvers() && (of.Fallback == profiles.FallbackQueue || s.Broker.NeedsApprover(of))
}

// Refuse records that somebody gave a verdict which they are not permitted to give,
// and which their own channel refused before it got here.
func (s *Settler) Refuse(ctx context.Context, e approval.StoredRequest, v approval.Verdict, why error) error {
	return s.record(ctx, ledger.Verdict, e.ID, e, v, why)
}

// entry finds the request that somebody answers; a zero one if it does not exist.
func (s *Settler) entry(ctx context.Context, id string) (approval.StoredRequest, error) {
	found, err := s.Broker.Requests(ctx, approval.Filter{ID: id})
	if err != nil {
		return approval.StoredRequest{}, fmt.Errorf("reading request %s: %w", canon.Escape(id), err)
	}
	if id == "" || len(found) != 1 {
		return approval.StoredRequest{}, nil // settling reports the error
	}
	return found[0], nil
}

// checkEdit refuses an approval with edited arguments that the tool would not
// accept: the person who wrote them can correct them, the script could not. The
// tools of another configuration are not known here.
func (s *Settler) checkEdit(e approval.StoredRequest, v approval.Verdict) error {
	edits, waits := v.Approve && v.Args != nil, e.ID != "" && e.Verdict == nil
	if s.Fits == nil || !edits || !waits || s.Broker.FromOtherConfiguration(e.Request) {
		return nil
	}
	if err := s.Fits(e, v.Args); err != nil {
		return &approval.RefusedError{Err: fmt.Errorf("the edited arguments do not fit the tool: %w", err)}
	}
	return nil
}

// recordOutcome records what became of a verdict that did not settle its request:
// that it is one of several approvals, or why it does not count. A verdict that
// settles is recorded by its call, which acts on it.
func (s *Settler) recordOutcome(ctx context.Context, id string, e approval.StoredRequest, v approval.Verdict, wrong error) error {
	if wrong == nil && e.Verdict != nil {
		return nil
	}
	return s.record(ctx, ledger.Verdict, id, e, v, wrong)
}

// record records a person's verdict on a request, or what became of it.
func (s *Settler) record(ctx context.Context, event ledger.Event, id string, e approval.StoredRequest, v approval.Verdict, wrong error) error {
	redact, now := canon.Redact, time.Now
	if s.Redact != nil {
		redact = s.Redact
	}
	if s.Now != nil {
		now = s.Now
	}
	rec := ledger.Record{Event: event, Time: now(), Request: canon.Escape(id), Durable: true}
	about(&rec, e)
	said(&rec, v, redact)
	if edit := e.Request.EditedArgs(v.Args); edit != nil && e.ID != "" { // otherwise it is not known what must be hidden
		rec.EditedArgs, rec.EditedDigest = edit.JSON, edit.Digest.String()
	}
	switch {
	case wrong != nil:
		rec.Outcome, rec.Error = ledger.Refused, canon.Escape(redact(wrong.Error()))
	case event == ledger.Verdict:
		rec.Outcome, rec.Error = ledger.Vote, e.Missing()
	}
	if event == ledger.Verdict {
		rec.Counted = new(wrong == nil)
	}
	return s.Recorder.Record(context.WithoutCancel(ctx), rec)
}

// about adds to a record what a request is about: the run, and the call or the
// first of several.
func about(rec *ledger.Record, e approval.StoredRequest) {
	if len(e.Items) == 0 {
		return
	}
	i, d := e.Items[0], e.Decision
	rec.Run, rec.Session, rec.Client, rec.Profile = e.Run, i.Key.Session, canon.Escape(e.Client), cmp.Or(i.Key.Profile, d.Profile)
	rec.Configuration, rec.Principal = i.Key.Configuration, canon.Escape(e.Requester)
	rec.Server, rec.Tool, rec.Identity = e.Server, e.Tool, i.Key.Identity
	rec.Call, rec.Trace = i.Call, trace(e.Run, i.Call)
	rec.Disposition, rec.Risk, rec.Revision = d.Disposition.String(), d.Risk.String(), d.Revision
	if len(e.Items) > 1 { // the arguments of each are in its own record
		return
	}
	rec.Digest = i.Key.Args.String()
	if rec.Event == ledger.Verdict {
		rec.Args = i.Shown.JSON
	}
}

// said adds to a record who answered and how. A text that nobody wrote, such as the
// reason of an automatic answer, is not a comment.
func said(rec *ledger.Record, v approval.Verdict, redact func(string) string) {
	rec.Approver, rec.OnBehalfOf, rec.Channel, rec.Answer = v.By, v.For, v.Channel, answerWord(v)
	if text := canon.Escape(redact(v.Text)); v.By == "" || v.Reason == approval.NoApprover {
		rec.Error = text
	} else {
		rec.Comment = text
	}
}

// answerWord returns the word for a verdict in records.
func answerWord(v approval.Verdict) string {
	switch {
	case v.Approve && v.Forget:
		return "yes, " + string(approval.Once) + ", and what was read before is forgotten"
	case v.Approve && v.Channel == "fallback":
		return "yes, by fallback"
	case v.Approve && v.Scope != "":
		return "yes, " + string(v.Scope)
	case v.Approve:
		return "yes, " + string(approval.Once)
	default:
		return "no, " + string(v.Reason)
	}
}
