package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A Desk is where every channel brings the verdicts of people: it settles
// requests and writes down what settles none. A gate has one; a program that
// only answers, such as a command line beside a running bridge, makes its own.
type Desk struct {
	Broker   *approval.Broker
	Recorder ledger.Recorder
	// Approvers reports whether there is anybody who could answer on a channel
	// that proves who they are; nil means that there never is.
	Approvers func() bool
	Now       func() time.Time // nil means time.Now
	// Redact hides secrets in what people wrote; nil means canon.Redact.
	Redact func(string) string
	// Fits says what is wrong with arguments that a person wrote for a call; nil
	// means that nobody here knows. They are checked again before they are sent.
	Fits func(e approval.Entry, args json.RawMessage) error
}

// Settle brings a person's verdict to the request with the given id. What a
// person said is recorded before it counts, also where no call waits for it any
// more; that it settles nothing, because another came first or it may not be
// given, is recorded too and its error returned. That a channel reached nobody
// settles nothing as long as an approver may still answer.
func (d *Desk) Settle(ctx context.Context, id string, about canon.Digest, v approval.Verdict) (approval.Entry, error) {
	if v.Reason == approval.NoApprover && !v.Approve && d.Approvers != nil && d.Approvers() {
		return approval.Entry{}, nil
	}
	if v.Approve || v.Reason != approval.NoApprover { // else nobody has said anything
		if err := d.record(ctx, ledger.Answered, id, approval.Entry{}, v, nil); err != nil {
			return approval.Entry{}, err
		}
	}
	e, err := d.fitting(ctx, id, v)
	if err == nil {
		e, err = d.Broker.Settle(ctx, id, about, v)
	}
	if err == nil && e.Verdict != nil {
		return e, nil // its call records it as the verdict
	}
	if lost := d.record(ctx, ledger.Verdict, id, e, v, err); err == nil {
		err = lost
	}
	return e, err
}

// fitting refuses a yes with edited arguments that the tool would not take:
// the person who wrote them can mend them, the script could not.
func (d *Desk) fitting(ctx context.Context, id string, v approval.Verdict) (approval.Entry, error) {
	if d.Fits == nil || !v.Approve || v.Args == nil {
		return approval.Entry{}, nil
	}
	found, err := d.Broker.Entries(ctx, approval.Filter{ID: id})
	if err != nil || len(found) != 1 || found[0].Verdict != nil {
		return approval.Entry{}, err // settling says what is wrong with it
	}
	if err := d.Fits(found[0], v.Args); err != nil {
		return found[0], &approval.RefusedError{Err: fmt.Errorf("the edited arguments do not fit the tool: %w", err)}
	}
	return approval.Entry{}, nil
}

// record writes down what a person said to a request, or what was wrong with
// that.
func (d *Desk) record(ctx context.Context, event ledger.Event, id string, e approval.Entry, v approval.Verdict, wrong error) error {
	redact, now := canon.Redact, time.Now
	if d.Redact != nil {
		redact = d.Redact
	}
	if d.Now != nil {
		now = d.Now
	}
	rec := ledger.Record{Event: event, Time: now(), Run: e.Run, Server: e.Server, Tool: e.Tool, Request: canon.Visible(id),
		Approver: v.Who(), Channel: v.Channel, Answer: answerWord(v), Durable: true}
	if len(e.Items) > 0 {
		rec.Call, rec.Session, rec.Profile = e.Items[0].Call, e.Items[0].Key.Session, e.Items[0].Key.Profile
		rec.Trace = trace(e.Run, rec.Call)
	}
	switch {
	case wrong != nil:
		rec.Outcome, rec.Error = ledger.Refused, canon.Visible(redact(wrong.Error()))
	case event == ledger.Verdict:
		rec.Error = e.Missing()
	default:
		rec.Comment = canon.Visible(redact(v.Text))
	}
	return d.Recorder.Record(context.WithoutCancel(ctx), rec)
}
