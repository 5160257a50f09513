package gate

import (
	"context"
	"errors"
	"fmt"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
)

// A run keeps what it began with across every pause and restart: its policy, which
// today's can only tighten, the identities of its servers, and each denial.

// Policy returns the policy that the run began with.
func (r *Run) Policy() *profiles.Set { return r.policy }

// Servers returns the identities of the servers that the run began with, by name.
func (r *Run) Servers() map[string]string { return r.servers }

// Trusted reports which servers' annotations were trusted when the run began.
func (r *Run) Trusted() map[string]bool { return r.trusted }

// moved says that the server of c is not the one that c is meant for, which is the
// one of that name that the run began with, if there was one.
func (r *Run) moved(c *call, now string) error {
	began, known := r.servers[c.tool.Server]
	if known && began != now || c.identity != now {
		return refused(c, approval.Stale, fmt.Sprintf("server %s became another one since the run began", c.tool.Server), true)
	}
	return nil
}

// barred refuses a call that can no longer be allowed, whatever policy says now:
// its server is another one, or it was denied in an earlier part of the run.
func (r *Run) barred(ctx context.Context, view *View, c *call) error {
	if err := r.moved(c, view.Identities[c.tool.Server]); err != nil {
		if c.Again {
			err = errors.Join(err, r.gate.broker.EndStale(ctx, r.ID, c.Number))
		}
		return err
	}
	if !c.Again {
		return nil
	}
	verdict, said, err := r.gate.broker.Refused(ctx, r.ID, c.Number, c.args.Digest())
	switch {
	case err != nil:
		return unrecorded(c, err)
	case !said:
		return nil
	}
	c.verdict = &verdict
	if lost := r.record(context.WithoutCancel(ctx), r.verdictRecord(c)); lost != nil {
		return unrecorded(c, lost)
	}
	if verdict.Stop {
		r.host.Stop(stopped(verdict))
	}
	return answered(c, verdict)
}

// decideBy judges c by a profile, both as it is in the view and as it was when the
// run began.
func (r *Run) decideBy(view *View, name string, facts []profiles.Call) profiles.Decision {
	today, ok := view.profile(name)
	began, had := profileOf(r.policy, name)
	if !ok || !had && name == r.Profile {
		return gone(name)
	}
	decision := decideAll(today, facts)
	if had && began != today {
		decision = profiles.Stricter(decision, decideAll(began, facts))
	}
	return decision
}

// outdated returns the questions that need no answer any more, because their server
// has been replaced by another one.
func outdated(view *View) func(approval.Key) bool {
	return func(k approval.Key) bool {
		now, there := view.Identities[k.Server]
		return there && now != k.Identity
	}
}
