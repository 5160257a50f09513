package gate

import (
	"context"
	"errors"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// ask puts c to a person and, after a yes, decides once more: minutes may have
// passed. It returns nil when c may be sent. A yes holds unless the tool or the
// policy's mind about this call has changed in between; what has become
// stricter is asked again.
func (r *Run) ask(ctx context.Context, c *call) error {
	for {
		if c.decision.Manual || len(c.decision.Quorums) > 0 {
			return denied(c, approval.NoApprover, "") // these take a channel that proves who answers
		}
		if r.Reach != ByElicitation {
			return r.fallBack(ctx, c)
		}
		asked := c.decision
		if err := r.record(ctx, c.record(ledger.Asked)); err != nil {
			return unrecorded(c, err)
		}
		verdict, err := r.gate.broker.Ask(ctx, r.request(c))
		rec := c.record(ledger.Verdict)
		rec.Approver, rec.Channel, rec.Answer = verdict.By, verdict.Channel, answerWord(verdict)
		rec.Error = canon.Visible(canon.Redact(verdict.Text))
		c.verdict = &verdict
		if lost := r.record(context.WithoutCancel(ctx), rec); lost != nil {
			return unrecorded(c, lost)
		}
		if errors.Is(err, approval.ErrFlood) {
			r.Stop(err)
		}
		if verdict.Reason == approval.Timeout && r.Attached != nil && !r.Attached() {
			// Nobody holds the run: it ends here rather than going on alone.
			r.Stop(errExpired)
			return denied(c, approval.Expired, "")
		}
		if verdict.Stop {
			r.Stop(errStopped)
		}
		if !verdict.Approve {
			return denied(c, verdict.Reason, verdict.Text)
		}
		view := r.gate.View()
		tool, ok := view.Catalog.Lookup(c.tool.Path())
		if !ok || tool.Digest != c.tool.Digest {
			return denied(c, approval.Stale, "the tool has changed")
		}
		c.decision = r.decide(view, c)
		if !stricter(c.decision, asked) {
			return nil
		}
	}
}

// fallBack answers for a person that the client cannot ask. Only a client that
// declared no elicitation is let through, only where the profile says so, and
// never without a record.
func (r *Run) fallBack(ctx context.Context, c *call) error {
	verdict := approval.Verdict{Reason: approval.ElicitationUnsupported, Channel: "fallback"}
	switch {
	case r.Reach == Nobody, c.decision.Fallback == profiles.FallbackQueue:
		verdict.Reason = approval.NoApprover
	case c.decision.Fallback == profiles.FallbackAllow:
		verdict = approval.Verdict{Approve: true, Scope: approval.Once, Channel: "fallback"}
	}
	rec := c.record(ledger.Verdict)
	rec.Channel, rec.Answer = verdict.Channel, answerWord(verdict)
	if err := r.record(ctx, rec); err != nil {
		return unrecorded(c, err)
	}
	c.verdict = &verdict
	if !verdict.Approve {
		return denied(c, verdict.Reason, "")
	}
	return nil
}

var errStopped = errors.New("the person who was asked said no and stopped the script")

var errExpired = errors.New("the run expired: nobody answered and no client was waiting")

// stricter reports whether a decision asks for more than the one that was
// answered yes. One that denies is for the caller to see.
func stricter(now, asked profiles.Decision) bool {
	return now.Disposition == profiles.Ask && (now.Risk > asked.Risk || now.Manual && !asked.Manual || now.RequireReason && !asked.RequireReason || len(now.Quorums) > len(asked.Quorums))
}

// allowed reports whether policy allows c by itself or a person did.
func (c *call) allowed() bool {
	return c.decision.Disposition == profiles.Allow || c.decision.Disposition == profiles.Ask && c.verdict != nil && c.verdict.Approve
}

// request is the question about c.
func (r *Run) request(c *call) approval.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return approval.Request{
		Run: r.ID, Client: r.Client, Server: c.tool.Server, Tool: c.tool.Name, Script: c.tool.Script,
		Decision: c.decision, Checks: []string{"arguments", "tool unchanged", "policy unchanged"},
		Preview: r.preview, Done: len(r.effects),
		Items: []approval.Item{{
			Call: c.Number, Shown: c.display(0), Position: c.Position,
			Key: approval.Key{Session: r.Session, Profile: r.Profile, Server: c.tool.Server, Tool: c.tool.Name,
				Definition: c.tool.Digest, Revision: c.decision.Revision, Args: c.args.Digest()},
		}},
	}
}

// answerWord names a verdict in a record.
func answerWord(v approval.Verdict) string {
	switch {
	case v.Approve && v.Scope != "":
		return "yes, " + string(v.Scope)
	case v.Approve:
		return "yes, " + string(approval.Once)
	default:
		return "no, " + string(v.Reason)
	}
}
