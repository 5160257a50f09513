package gate

import (
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

// intend records that c is about to be sent. From then on its outcome is unknown until
// finish.
func (r *Run) intend(ctx context.Context, c *call) error {
	if !r.host.Sends(c.Number) {
		return ErrSuspended
	}
	if err := r.trail.Record(ctx, c.intent(), c.journal().Sending()); err != nil {
		r.host.Returns(c.Number)
		return err
	}
	if c.verdict != nil {
		r.gate.broker.Uses().Counts(c.verdict.Use)
		c.verdict.Use = approval.Use{}
	}
	r.tally.add(c.effect(ledger.Unknown))
	r.read.Sent(c.Number)
	data{r}.store(c.tool.Server, c.Number, c.flow)
	return nil
}

// intent makes the record of a call that is about to be sent.
func (c *call) intent() ledger.Record {
	rec := c.record(ledger.Intent)
	rec.Box = c.gate.View().box(c.tool.Server).Steps
	rec.Sent = len(c.args.Bytes())
	rec.Durable = !c.decision.ReadOnly || c.decision.Disposition == profiles.Ask
	if c.verdict != nil {
		rec.Grant, rec.GrantUses = c.verdict.Use.Grant, c.verdict.Use.Of
	}
	if c.shown != nil {
		rec.Detail = fmt.Appendf(nil, `{"asked_about":%q}`, c.shown)
	}
	return rec
}

// finish records how a sent call ended, and makes its answer.
func (r *Run) finish(ctx context.Context, c *call, reply json.RawMessage, err error, took time.Duration, end func(how string)) (Answer, error) {
	defer r.host.Returns(c.Number)
	var answer Answer
	var rec ledger.Record
	r.gate.inTurn(ctx, r, func() {
		answer, rec, err = r.outcome(c, reply, err)
		rec.Duration = took
		end(rec.Outcome)
		answer.Reply = c.reply(answer, err)
	})
	kept := c.journal().Ended(answer.Reply, c.past(rec.Outcome, len(reply)))
	r.tally.mark(c.Number, rec.Outcome, len(reply))
	if lost := c.keepOutcome(context.WithoutCancel(ctx), r, rec, kept, answer); lost != nil && err == nil {
		err = &UnknownOutcomeError{Tool: c.tool.Script, Server: c.tool.Server, Repeatable: c.decision.Repeatable, Err: errors.Join(errors.New("its outcome could not be written down"), lost)}
		answer.Reply = c.reply(answer, err)
	}
	return answer, err
}

// outcome reads the answer to a sent call, or the error that came instead. It returns the
// record of it, and the error that the script gets.
func (r *Run) outcome(c *call, reply json.RawMessage, err error) (answer Answer, rec ledger.Record, _ error) {
	if err == nil {
		answer, err = parseAnswer(c.tool, reply)
		r.remember(c, reply)
	} else {
		data{r}.failed(c, err)
	}
	if box := c.gate.View().box(c.tool.Server); answer.IsError && box.Beyond != nil {
		answer.Beyond = box.Beyond(answer.ErrorText())
	}
	rec = c.record(ledger.Outcome)
	rec.Received = len(reply)
	rec.Durable = !c.decision.ReadOnly || c.decision.Disposition == profiles.Ask
	switch {
	case err == nil && answer.IsError:
		rec.Outcome, rec.Error = ledger.Failed, r.redact(answer.ErrorText())
	case err == nil:
		rec.Outcome = ledger.Done
	case wasSent(err) && !(c.decision.ReadOnly && c.decision.Repeatable):
		rec.Outcome, rec.Error = ledger.Unknown, r.redact(err.Error())
		err = &UnknownOutcomeError{Tool: c.tool.Script, Server: c.tool.Server, Repeatable: c.decision.Repeatable, Err: err}
	default:
		rec.Outcome, rec.Error = ledger.Failed, r.redact(err.Error())
		err = &CallError{Tool: c.tool.Script, Server: c.tool.Server, Err: err}
	}
	rec.Error = canon.Escape(rec.Error)
	return answer, rec, err
}

// keepOutcome has the outcome of a sent call written: with the next record of the run,
// unless the call leads a browser or a server to a place where other runs act.
func (c *call) keepOutcome(ctx context.Context, r *Run, rec ledger.Record, e Entries, answer Answer) error {
	kept := e.Done
	e.Done = func(err error) {
		if kept != nil {
			kept(err)
		}
		if c.Written != nil {
			c.Written(err)
		}
		switch {
		case err != nil:
			r.tally.mark(c.Number, ledger.Unknown, 0)
		case rec.Outcome == ledger.Done && c.Kept != nil:
			c.Kept(answer)
		}
	}
	if c.landed == nil {
		return r.trail.Defer(ctx, rec, e)
	}
	err := r.trail.Record(ctx, rec, e)
	c.landed(err == nil && rec.Outcome == ledger.Done)
	return err
}

// refuse records that a call was not sent, and returns why. known is nil when
// there is no such tool, and has no arguments when they could not be read.
func (r *Run) refuse(ctx context.Context, c Call, known *call, why error) (Answer, error) {
	if known != nil {
		known.unused()
		r.read.Drop(c.Number)
	}
	if r.host.Suspended() {
		return Answer{}, ErrSuspended
	}
	if c.Lost { // it was already sent, whatever would be decided now
		return r.outcomeUnknown(ctx, c)
	}
	name := canon.Escape(r.redact(c.Name)) // a script may have put anything there
	rec := ledger.Record{Event: ledger.Refusal, Call: c.Number, Tool: name, Line: c.Position.Line, Column: c.Position.Column}
	past := Past{Effect: Effect{Number: c.Number, Tool: name, State: ledger.Refused}}
	if known != nil {
		rec = known.record(ledger.Refusal)
		past = known.past(ledger.Refused, 0)
		past.Effect.Repeatable = false
	}
	rec.Outcome, rec.Error, rec.Durable = ledger.Refused, canon.Escape(r.redact(why.Error())), true
	past.Effect.Retry = retry(why)
	r.tally.add(past.Effect)
	return r.conclude(ctx, c, rec, past, why) // refused whether or not this can be recorded
}

// conclude records what became of a call that has no answer, with what the script
// gets for it. If that cannot be recorded, the script is told so, too.
func (r *Run) conclude(ctx context.Context, c Call, rec ledger.Record, past Past, why error) (Answer, error) {
	reply := c.reply(Answer{}, why)
	if lost := r.trail.Record(context.WithoutCancel(ctx), rec, c.journal().Ended(reply, past)); lost != nil {
		why = errors.Join(why, lost)
		reply = c.reply(Answer{}, why)
	}
	return Answer{Reply: reply}, why
}

// outcomeUnknown ends a call that an earlier part of the run sent: its answer is
// lost, and it is not known to be repeatable.
func (r *Run) outcomeUnknown(ctx context.Context, c Call) (Answer, error) {
	view := r.gate.View()
	made := &call{Call: c, gate: r.gate}
	rec := ledger.Record{Event: ledger.Outcome, Call: c.Number, Tool: canon.Escape(r.redact(c.Name)), Line: c.Position.Line, Column: c.Position.Column}
	err := &UnknownOutcomeError{Tool: rec.Tool, Err: errLost}
	past := Past{Effect: Effect{Number: c.Number, Tool: rec.Tool, State: ledger.Unknown}}
	if tool, ok := r.Names.Find(view.Catalog, c.Name); ok {
		made.tool = tool
		made.args, _ = canon.Parse(c.Args)
		r.tally.count(made)
		rec.Server, rec.Tool = tool.Server, tool.Name
		err.Tool, err.Server = tool.Script, tool.Server
		past = made.past(ledger.Unknown, 0)
	}
	rec.Outcome, rec.Error, rec.Durable = ledger.Unknown, errLost.Error(), true
	r.tally.add(past.Effect)
	return r.conclude(ctx, c, rec, past, err)
}

// errLost is the cause when an earlier part of the run sent a call and nobody can
// tell what it did.
var errLost = errors.New("it was sent before the bridge ended, and no answer was written down")

// repeatable reports whether a call is repeatable, by both the policy that its run
// began with and today's.
func (g *Gate) repeatable(ctx context.Context, r *Run, c Call) bool {
	view, tool, err := g.lookup(ctx, r, c.Name)
	if err != nil {
		return false
	}
	args, err := canon.Parse(c.Args)
	if err != nil {
		return false
	}
	made := &call{Call: c, gate: g, tool: tool, args: args}
	made.meaning, made.flow = r.meaning(view, made), data{r}.flow(view, made)
	return r.judge(view, made, r.tally.others(made)).Repeatable
}

// wasSent reports whether the upstream may have received a call that ended
// with err.
func wasSent(err error) bool {
	var s interface{ WasSent() bool }
	if errors.As(err, &s) {
		return s.WasSent()
	}
	return true
}
